// Line icons, drawn for this app.
const PATHS = {
  chat: 'M4 5h16v11H9l-5 4z',
  files: 'M3 6h6l2 3h10v10H3z',
  models: 'M12 3l8 4.5v9L12 21l-8-4.5v-9zM4 7.5l8 4.5 8-4.5M12 12v9',
  dashboard: 'M4 20V10M10 20V4M16 20v-7M22 20H2',
  settings: 'M4 7h8M16 7h4M14 5a2 2 0 1 0 0 4a2 2 0 0 0 0-4M4 17h2M10 17h10M8 15a2 2 0 1 0 0 4a2 2 0 0 0 0-4',
  menu: 'M4 7h16M4 12h16M4 17h16',
  clip: 'M19 11l-7.5 7.5a4.5 4.5 0 0 1-6.4-6.4L13 4.3a3 3 0 0 1 4.2 4.2l-7.8 7.8a1.5 1.5 0 0 1-2.1-2.1L14 7.5',
  plus: 'M12 5v14M5 12h14',
  send: 'M12 19V5M6 11l6-6 6 6',
  stop: 'M7 7h10v10H7z',
  close: 'M6 6l12 12M18 6L6 18',
  trash: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13',
  pencil: 'M5 19l1-4L16 5l3 3L9 18z',
  left: 'M14 6l-6 6 6 6',
  right: 'M10 6l6 6-6 6',
  down: 'M12 5v14M6 13l6 6 6-6',
};

export function Icon({ name }: { name: keyof typeof PATHS }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
