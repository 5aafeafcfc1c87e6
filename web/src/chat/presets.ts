// What a chat is asked with, kept under a name: its system prompt, how much it thinks, and sampling.
import type { Conversation, Sampling, Thinking } from './types.ts';

export interface Preset {
  name: string;
  system: string;
  thinking: Thinking;
  sampling: Sampling;
}

export const PRESETS_MAX = 100;
export const PRESET_NAME_CHARS_MAX = 60;

export const presetOf = (name: string, { system, thinking, sampling }: Conversation): Preset =>
  ({ name: name.trim().slice(0, PRESET_NAME_CHARS_MAX), system, thinking, sampling });

// One of the same name is replaced.
export function withPreset(presets: Preset[], preset: Preset): Preset[] {
  const others = presets.filter(({ name }) => name !== preset.name);
  return [...others, preset].sort((a, b) => a.name.localeCompare(b.name)).slice(0, PRESETS_MAX);
}

export const isFull = (presets: Preset[], name: string) =>
  presets.length >= PRESETS_MAX && !presets.some((one) => one.name === name);

export const settingsOf = ({ system, thinking, sampling }: Preset): Partial<Conversation> =>
  ({ system, thinking, sampling });

// Whether a chat is as the preset has it.
export function isAs(preset: Preset, { system, thinking, sampling }: Conversation): boolean {
  return preset.system === system && preset.thinking === thinking &&
    Object.entries(preset.sampling).every(([name, value]) => sampling[name as keyof Sampling] === value);
}
