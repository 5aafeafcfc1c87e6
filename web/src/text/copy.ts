// navigator.clipboard is missing where the page came over plain HTTP from another machine.
export async function copyText(text: string): Promise<boolean> {
  if (navigator.clipboard) {
    return navigator.clipboard.writeText(text).then(() => true, () => false);
  }
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'hidden';
  document.body.append(area);
  area.select();
  const is_copied = document.execCommand('copy');
  area.remove();
  return is_copied;
}
