// What the server's index has, asked again while something is being read and the page is seen.
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ApiFailure } from '../../api/http.ts';
import { type IndexStatus, indexStatus, toolNames } from '../../api/mcp.ts';
import { settings } from '../../settings.ts';

const POLL_MS = 1000;

export interface IndexState {
  tools: string[] | null; // null: the server does not offer the index
  status: IndexStatus | null; // null: not known yet
}

// Whether time alone changes it: what has a problem waits for somebody.
export function isMoving({ projects, index }: IndexStatus): boolean {
  return projects.some(({ state }) => state === 'being read' || state === 'not read yet') ||
    (!index.is_fresh && projects.every(({ state }) => state !== 'problem'));
}

export function useIndex() {
  const [state, setState] = useState<IndexState | null>(null);
  const [problem, setProblem] = useState<ApiFailure | null>(null);
  const reload = useRef(() => {});
  useEffect(() => {
    let timer = 0;
    let is_over = false;
    let is_asking = false;
    let wants_again = false; // what was asked for may have changed since
    let tools: string[] | null = null;
    const look = async () => {
      clearTimeout(timer);
      if (document.hidden || is_over) return;
      if (is_asking) {
        wants_again = true;
        return;
      }
      is_asking = true;
      wants_again = false;
      try {
        tools ??= await toolNames();
        const status = tools && (await indexStatus());
        if (is_over) return;
        setState({ tools, status });
        setProblem(null);
        if (status && isMoving(status)) timer = window.setTimeout(look, POLL_MS);
      } catch (error) {
        if (!is_over) setProblem(error as ApiFailure);
      } finally {
        is_asking = false;
        if (wants_again) void look();
      }
    };
    reload.current = () => void look();
    void look();
    document.addEventListener('visibilitychange', look);
    return () => {
      is_over = true;
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', look);
    };
  }, [settings.value.api_key]);
  return { state, problem, reload: () => reload.current() };
}
