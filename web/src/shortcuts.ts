// Keys that work everywhere in the app.
import { running, stop } from './chat/answering.ts';
import { PAGES, go, hrefOf, place } from './place.ts';

export const SHORTCUTS = [
  { keys: 'Esc', does: 'Stop the answer' },
  { keys: '/', does: 'Write a message' },
  { keys: 'Ctrl Shift O', does: 'New chat' },
  { keys: 'Ctrl K', does: 'Search chats' },
  { keys: 'Alt 1 … 5', does: 'Chat, Files, Models, Dashboard, Settings' },
];

const isWriting = (target: EventTarget | null) =>
  target instanceof HTMLElement && target.matches('input, textarea, select');

// At once, so that no letter is lost; from another page the field comes with the next frame.
function write(field: string, id = '') {
  go('chat', id);
  const focus = () => document.getElementById(field)?.focus();
  focus();
  requestAnimationFrame(focus);
}

export const startChat = () => write('composer');

export function listenToKeys() {
  addEventListener('keydown', (event) => {
    const control = event.ctrlKey || event.metaKey;
    const page = PAGES[Number(event.key) - 1];
    let action: (() => void) | undefined;
    if (event.key === 'Escape' && !document.querySelector('dialog[open]')) {
      const { id } = place.value;
      if (running.value.has(id)) action = () => stop(id);
    } else if (control && event.shiftKey && event.key.toLowerCase() === 'o') {
      action = startChat;
    } else if (control && event.key.toLowerCase() === 'k') {
      action = () => write('search-chats');
    } else if (event.altKey && !control && page) {
      action = () => { location.hash = hrefOf(page); };
    } else if (event.key === '/' && !control && !isWriting(event.target)) {
      action = () => write('composer', place.value.id);
    }
    if (!action) return;
    event.preventDefault();
    action();
  });
}
