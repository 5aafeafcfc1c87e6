// Keeps the shell of the app, so that it opens without the server; never an answer of the API.
const VERSION = __VERSION__;
const SHELL = __SHELL__;
const CACHE = `shell-${VERSION}`;

self.addEventListener('install', (event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(SHELL)));
  self.skipWaiting();
});

self.addEventListener('activate', (event) => {
  const drop = async () => {
    const names = (await caches.keys()).filter((name) => name !== CACHE);
    await Promise.all(names.map((name) => caches.delete(name)));
    await self.clients.claim();
  };
  event.waitUntil(drop());
});

// The page comes from the server where there is one: a new version shows at the next visit. What it
// names has its hash in its name, and comes from here.
async function page(request) {
  try {
    return await fetch(request);
  } catch {
    return (await caches.match('/')) ?? Response.error();
  }
}

self.addEventListener('fetch', (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== 'GET' || url.origin !== location.origin) return;
  if (!SHELL.includes(url.pathname)) return;
  if (url.pathname === '/') {
    event.respondWith(page(request));
  } else {
    event.respondWith(caches.match(request).then((found) => found ?? fetch(request)));
  }
});
