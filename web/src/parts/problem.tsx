// Something went wrong, and what to do about it.
interface Props {
  message: string;
  needs_key?: boolean | undefined;
  onRetry?: (() => void) | undefined;
}

export function Problem({ message, needs_key, onRetry }: Props) {
  return (
    <div class="problem" role="alert">
      <p>{message}</p>
      {needs_key && <a href="#/settings">Enter the key in Settings</a>}
      {!needs_key && onRetry && <button type="button" onClick={onRetry}>Try again</button>}
    </div>
  );
}
