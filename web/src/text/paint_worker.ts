// Colours code and sets formulas, apart from the page: what a model writes can keep a library busy for
// long, and then only this worker has to be ended (painter.ts). What it needs it loads when it is asked.
import { type Tree, parseMarkup, textOf } from './markup.ts';

export type Job = { kind: 'code'; language: string; text: string } | { kind: 'math'; text: string; is_block: boolean };

const LANGUAGES: Record<string, () => Promise<{ default: unknown }>> = {
  bash: () => import('highlight.js/lib/languages/bash'),
  c: () => import('highlight.js/lib/languages/c'),
  cpp: () => import('highlight.js/lib/languages/cpp'),
  csharp: () => import('highlight.js/lib/languages/csharp'),
  css: () => import('highlight.js/lib/languages/css'),
  diff: () => import('highlight.js/lib/languages/diff'),
  dockerfile: () => import('highlight.js/lib/languages/dockerfile'),
  go: () => import('highlight.js/lib/languages/go'),
  ini: () => import('highlight.js/lib/languages/ini'),
  java: () => import('highlight.js/lib/languages/java'),
  javascript: () => import('highlight.js/lib/languages/javascript'),
  json: () => import('highlight.js/lib/languages/json'),
  kotlin: () => import('highlight.js/lib/languages/kotlin'),
  lua: () => import('highlight.js/lib/languages/lua'),
  makefile: () => import('highlight.js/lib/languages/makefile'),
  markdown: () => import('highlight.js/lib/languages/markdown'),
  php: () => import('highlight.js/lib/languages/php'),
  python: () => import('highlight.js/lib/languages/python'),
  r: () => import('highlight.js/lib/languages/r'),
  ruby: () => import('highlight.js/lib/languages/ruby'),
  rust: () => import('highlight.js/lib/languages/rust'),
  sql: () => import('highlight.js/lib/languages/sql'),
  swift: () => import('highlight.js/lib/languages/swift'),
  typescript: () => import('highlight.js/lib/languages/typescript'),
  xml: () => import('highlight.js/lib/languages/xml'),
  yaml: () => import('highlight.js/lib/languages/yaml'),
};
const ALIASES: Record<string, string> = {
  sh: 'bash', shell: 'bash', zsh: 'bash', console: 'bash', h: 'c', 'c++': 'cpp', cc: 'cpp', hpp: 'cpp', cs: 'csharp',
  'c#': 'csharp', patch: 'diff', docker: 'dockerfile', golang: 'go', toml: 'ini', conf: 'ini', js: 'javascript',
  jsx: 'javascript', mjs: 'javascript', jsonc: 'json', kt: 'kotlin', make: 'makefile', md: 'markdown', py: 'python',
  python3: 'python', rb: 'ruby', rs: 'rust', ts: 'typescript', tsx: 'typescript', html: 'xml', svg: 'xml', vue: 'xml',
  yml: 'yaml', postgresql: 'sql', sqlite: 'sql', mysql: 'sql' };

// null: nothing is known of this language.
export function nameOf(language: string): string | null {
  const lower = language.toLowerCase();
  const name = Object.hasOwn(ALIASES, lower) ? ALIASES[lower]! : lower;
  return Object.hasOwn(LANGUAGES, name) ? name : null;
}

async function colour(language: string, code: string): Promise<Tree[] | null> {
  const name = nameOf(language);
  if (!name) return null;
  const { default: hljs } = await import('highlight.js/lib/core');
  if (!hljs.getLanguage(name)) hljs.registerLanguage(name, (await LANGUAGES[name]!()).default as never);
  const tree = parseMarkup(hljs.highlight(code, { language: name, ignoreIllegals: true }).value);
  return tree && textOf(tree) === code ? tree : null; // colours change no letter
}

async function set(tex: string, is_block: boolean): Promise<Tree[] | null> {
  const { default: temml } = await import('temml');
  return parseMarkup(temml.renderToString(tex, {
    displayMode: is_block, throwOnError: true, trust: false, maxExpand: 1000, maxSize: [20, 60] }));
}

export async function paint(job: Job): Promise<Tree[] | null> {
  try {
    return await (job.kind === 'code' ? colour(job.language, job.text) : set(job.text, job.is_block));
  } catch {
    return null; // it is no formula, or no library could be loaded: the text stays as it is
  }
}

// Not where tests import it.
if (typeof document === 'undefined' && 'postMessage' in globalThis) {
  addEventListener('message', ({ data }: MessageEvent<Job>) => {
    void paint(data).then((tree) => (globalThis as unknown as Worker).postMessage(tree));
  });
}
