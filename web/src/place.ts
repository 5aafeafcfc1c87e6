// Where in the app the user is: #/chat/ID, #/files, #/models, #/dashboard, #/settings. In the
// fragment, so that the server has one page to answer with.
import { effect, signal } from '@preact/signals';

export type Page = 'chat' | 'files' | 'models' | 'dashboard' | 'settings';
export const PAGES: Page[] = ['chat', 'files', 'models', 'dashboard', 'settings'];

function read(): { page: Page; id: string } {
  const [page, id] = location.hash.replace(/^#\/?/, '').split('/');
  return { page: PAGES.find((one) => one === page) ?? 'chat', id: id ?? '' };
}

export const place = signal(read());
// Where "Chat" leads back to from other pages.
let last_chat = '';
effect(() => {
  if (place.value.page === 'chat') last_chat = place.value.id;
});
addEventListener('hashchange', () => { place.value = read(); });

export const hrefOf = (page: Page) =>
  page === 'chat' && place.value.page !== 'chat' && last_chat ? `#/chat/${last_chat}` : `#/${page}`;

export function go(page: Page, id = '') {
  location.hash = id ? `#/${page}/${id}` : `#/${page}`;
  place.value = read(); // the event comes later
}
