// One page, hashed assets, and a service worker that knows their names.
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { type Plugin, defineConfig } from 'vite';

// vite-plugin-pwa would bring Workbox and some two hundred packages to cache eight files.
function shellWorker(): Plugin {
  return {
    name: 'shell-worker',
    apply: 'build',
    enforce: 'post',
    generateBundle(_options, bundle) {
      const statics = readdirSync('public').map((name) => `/${name}`);
      const assets = Object.keys(bundle).filter((name) => name !== 'index.html');
      const files = ['/', ...statics, ...assets.map((name) => `/${name}`)].sort();
      const hash = createHash('sha256');
      for (const name of readdirSync('public').sort()) hash.update(readFileSync(`public/${name}`));
      for (const name of Object.keys(bundle).sort()) {
        const file = bundle[name]!;
        hash.update(name).update(file.type === 'chunk' ? file.code : file.source);
      }
      const source = readFileSync('src/service_worker.js', 'utf8')
        .replace('__VERSION__', JSON.stringify(hash.digest('hex').slice(0, 16)))
        .replace('__SHELL__', JSON.stringify(files));
      this.emitFile({ type: 'asset', fileName: 'service_worker.js', source });
    },
  };
}

// Vite's list of licences, and those of what only the worker has, which it does not see.
const OF_WORKER = ['highlight.js', 'temml'];
function workerLicenses(): Plugin {
  return {
    name: 'worker-licenses',
    apply: 'build',
    enforce: 'post',
    generateBundle: { order: 'post', handler(_options, bundle) {
      const file = bundle['licenses.md'];
      if (file?.type !== 'asset') return this.error('Vite made no licenses.md');
      for (const name of OF_WORKER) {
        const { version, license } = JSON.parse(readFileSync(`node_modules/${name}/package.json`, 'utf8'));
        file.source += `\n## ${name} - ${version} (${license})\n\n${readFileSync(`node_modules/${name}/LICENSE`, 'utf8')}`;
      }
    } },
  };
}

const server = process.env.SLIPSTREAM_URL ?? 'http://127.0.0.1:8080';

export default defineConfig({
  plugins: [workerLicenses(), shellWorker()],
  worker: { format: 'es' }, // so that it loads a language when it is asked for one
  build: { license: { fileName: 'licenses.md' }, target: 'es2022', assetsInlineLimit: 0, modulePreload: { polyfill: false } },
  // `npm run dev`: the page from Vite, the API from a running `slipstream serve`. The server's own
  // name as origin, for it refuses pages of others.
  server: {
    proxy: Object.fromEntries(['/v1', '/mcp', '/metrics', '/slipstream', '/health'].map((path) =>
      [path, { target: server, changeOrigin: true, headers: { origin: server } }])),
  },
});
