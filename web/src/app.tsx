// The frame: five pages and the way between them.
import { useEffect, useRef } from 'preact/hooks';
import { servedModels } from './api/models.ts';
import { announcement } from './chat/answering.ts';
import { ChatPage } from './pages/chat/chat_page.tsx';
import { DashboardPage } from './pages/dashboard/dashboard_page.tsx';
import { FilesPage } from './pages/files/files_page.tsx';
import { ModelsPage } from './pages/models_page.tsx';
import { SettingsPage } from './pages/settings_page.tsx';
import { Icon } from './parts/icons.tsx';
import { PAGES, go, hrefOf, place } from './place.ts';

const NAMES = {
  chat: 'Chat', files: 'Files', models: 'Models', dashboard: 'Dashboard', settings: 'Settings' };

export function App() {
  const { page, id } = place.value;
  const main = useRef<HTMLElement>(null);
  useEffect(() => {
    document.title = page === 'chat' ? 'Slipstream' : `${NAMES[page]} – Slipstream`;
  }, [page]);
  useEffect(() => {
    // Who opens the app of a server without a model wants one first.
    const is_new_chat = () => place.value.page === 'chat' && !place.value.id;
    if (!is_new_chat()) return;
    servedModels().then((models) => {
      if (models.length === 0 && is_new_chat()) go('models');
    }, () => undefined); // the page says itself what is wrong
  }, []);
  const skip = (event: Event) => {
    event.preventDefault(); // the fragment is where the page's name is
    main.current?.focus();
  };
  return (
    <div class="app">
      <a class="skip" href="#main" onClick={skip}>Skip to the content</a>
      <nav class="rail" aria-label="Pages">
        <img src="/icon.svg" alt="Slipstream" width="32" height="32" />
        {PAGES.map((name) => (
          <a key={name} href={hrefOf(name)} aria-current={name === page ? 'page' : undefined}>
            <Icon name={name} />
            <span>{NAMES[name]}</span>
          </a>
        ))}
      </nav>
      <main id="main" ref={main} tabIndex={-1}>
        {page === 'chat' && <ChatPage id={id} />}
        {page === 'files' && <FilesPage />}
        {page === 'models' && <ModelsPage />}
        {page === 'dashboard' && <DashboardPage />}
        {page === 'settings' && <SettingsPage />}
      </main>
      <div class="hidden" role="status" aria-live="polite">{announcement.value}</div>
    </div>
  );
}
