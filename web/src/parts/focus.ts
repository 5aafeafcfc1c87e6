// The focus for what has just come into the page. The attribute autofocus does that once for a page.
import { useLayoutEffect, useRef } from 'preact/hooks';

export function useFocus<T extends HTMLElement>() {
  const element = useRef<T>(null);
  useLayoutEffect(() => element.current?.focus(), []);
  return element;
}
