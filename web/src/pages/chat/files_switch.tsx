// Whether the user's files are searched before each answer of a chat, and which. Nothing where the
// server offers none.
import { useEffect, useState } from 'preact/hooks';
import { type Folder, listFolders } from '../../api/mcp.ts';
import type { FileSearch } from '../../chat/types.ts';
import { Icon } from '../../parts/icons.tsx';
import { settings } from '../../settings.ts';
import { lastPart } from '../../text/places.ts';

// Chats work without: that there are no folders to choose from is no problem of theirs.
export function useFolders() {
  const [folders, setFolders] = useState<Folder[]>([]);
  useEffect(() => {
    listFolders().then(setFolders, () => setFolders([]));
  }, [settings.value.api_key]);
  return folders;
}

interface Props {
  folders: Folder[];
  files: FileSearch;
  onChange: (files: FileSearch) => void;
}

export function FilesSwitch({ folders, files, onChange }: Props) {
  const { is_on, project } = files;
  if (folders.length === 0 && !is_on) return null;
  return (
    <div class="files-switch">
      <button type="button" class="quiet small" aria-pressed={is_on}
        onClick={() => onChange({ ...files, is_on: !is_on })}>
        <Icon name="files" />Search my files
      </button>
      {is_on && (
        <select aria-label="Folder to search" value={project}
          onChange={(event) => onChange({ ...files, project: event.currentTarget.value })}>
          <option value="">All folders</option>
          {project && !folders.some((one) => one.project === project) && (
            <option value={project}>{lastPart(project)}</option>
          )}
          {folders.map((one) => (
            <option key={one.project} value={one.project}>{lastPart(one.project)}</option>
          ))}
        </select>
      )}
    </div>
  );
}
