import { render } from 'preact';
import { App } from './app.tsx';
import { tellDeleted } from './chat/attaching.ts';
import { openStore } from './chat/store.ts';
import { listenToKeys } from './shortcuts.ts';
import './styles/tokens.css';
import './styles/base.css';
import './styles/chat.css';
import './styles/painted.css';
import './styles/pages.css';
import './styles/files.css';

await openStore();
render(<App />, document.getElementById('app')!);
listenToKeys();
void tellDeleted();

// Needs HTTPS or this machine: without it the app works, and is not kept for use offline.
if (import.meta.env.PROD && 'serviceWorker' in navigator) {
  void navigator.serviceWorker.register('/service_worker.js').catch(() => undefined);
}
