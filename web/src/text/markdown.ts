// What models write, as HTML that cannot do anything.
//
// No raw HTML is let through, no image is fetched (it would tell its host that it was read), no
// style attribute is made (the page's policy forbids them), and links are of harmless kinds.
//
// Colours of code and formulas come later (rich_view.ts): here they are text with a mark.
import MarkdownIt from 'markdown-it';
import { addMath } from './math_rule.ts';

export const markdown = new MarkdownIt({ html: false, linkify: true, breaks: true });
addMath(markdown);
const escape = markdown.utils.escapeHtml;

markdown.validateLink = (url) => /^(https?:|mailto:|#)/i.test(url.trim());

const { rules } = markdown.renderer;

rules.link_open = (tokens, index, options, _env, self) => {
  tokens[index]!.attrSet('target', '_blank');
  tokens[index]!.attrSet('rel', 'noopener noreferrer');
  return self.renderToken(tokens, index, options);
};

rules.image = (tokens, index) => {
  const url = String(tokens[index]!.attrGet('src') ?? '');
  const label = tokens[index]!.content || url;
  return `<a href="${escape(url)}" target="_blank" rel="noopener noreferrer">` +
    `Image: ${escape(label)}</a>`;
};

for (const rule of ['th_open', 'td_open']) {
  rules[rule] = (tokens, index, options, _env, self) => {
    const token = tokens[index]!;
    const alignment = /text-align:(left|center|right)/.exec(String(token.attrGet('style') ?? ''))?.[1];
    token.attrs = alignment ? [['class', `align-${alignment}`]] : null;
    return self.renderToken(tokens, index, options);
  };
}

rules.table_open = () => '<div class="table" tabindex="0" role="group" aria-label="Table"><table>';
rules.table_close = () => '</table></div>';

export function codeBlock(code: string, language: string): string {
  const is_name = /^[\w+#.-]{1,32}$/.test(language);
  return `<div class="code"><div class="code-head"><span>${escape(language || 'text')}</span>` +
    '<button type="button" class="quiet small" data-copy>Copy</button></div>' +
    `<pre tabindex="0"><code${is_name ? ` data-language="${language}"` : ''}>${escape(code)}` +
    '</code></pre></div>';
}
export const languageOf = (info: string) => info.trim().split(/\s+/)[0] ?? '';
rules.fence = (tokens, index) =>
  codeBlock(tokens[index]!.content, languageOf(markdown.utils.unescapeAll(tokens[index]!.info)));
rules.code_block = (tokens, index) => codeBlock(tokens[index]!.content, '');

export function toHtml(text: string): string {
  return markdown.render(text);
}
