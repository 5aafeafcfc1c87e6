// What the user chose, kept in this browser's localStorage.
import { effect, signal } from '@preact/signals';
import { setApiKey } from './api/http.ts';
import type { Preset } from './chat/presets.ts';
import { NO_SAMPLING, type Sampling } from './chat/types.ts';

export type Theme = 'system' | 'light' | 'dark';

export interface Settings {
  api_key: string;
  theme: Theme;
  model: string;
  sampling: Sampling;
  presets: Preset[];
}

const KEY = 'slipstream.settings';
const DEFAULTS: Settings = { api_key: '', theme: 'system', model: '', sampling: NO_SAMPLING, presets: [] };

function load(): Settings {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? '{}');
    return { ...DEFAULTS, ...kept, sampling: { ...NO_SAMPLING, ...kept.sampling } };
  } catch {
    return DEFAULTS; // forbidden or damaged: choices are lost, nothing else
  }
}

export const settings = signal<Settings>(load());

export function set(change: Partial<Settings>) {
  settings.value = { ...settings.value, ...change };
}

export function resetSettings() {
  settings.value = { ...DEFAULTS };
}

effect(() => {
  setApiKey(settings.value.api_key);
  const { theme } = settings.value;
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem(KEY, JSON.stringify(settings.value));
  } catch {
    // Without storage the choices hold until the page closes.
  }
});
