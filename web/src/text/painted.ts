// Elements of what painter.ts gives: those, and those attributes, that colours and formulas are made of,
// and nothing else.
import type { Tree } from './markup.ts';

const MATHML = 'http://www.w3.org/1998/Math/MathML';
const MATH_TAGS = new Set(['math', 'mrow', 'mi', 'mn', 'mo', 'ms', 'mtext', 'mspace', 'mfrac', 'msqrt', 'mroot',
  'msub', 'msup', 'msubsup', 'munder', 'mover', 'munderover', 'mmultiscripts', 'mprescripts', 'mtable', 'mtr', 'mtd',
  'mpadded', 'mphantom', 'menclose', 'mstyle']);
const MATH_ATTRIBUTES = new Set(['display', 'displaystyle', 'scriptlevel', 'mathvariant', 'fence', 'form', 'stretchy',
  'symmetric', 'largeop', 'movablelimits', 'separator', 'accent', 'accentunder', 'lspace', 'rspace', 'width', 'height',
  'depth', 'voffset', 'minsize', 'maxsize', 'linethickness', 'columnspan', 'rowspan', 'notation', 'columnalign']);
// Set one by one, which the page's policy allows, unlike an attribute "style".
const MATH_STYLES = new Set(['padding', 'padding-left', 'padding-right', 'border', 'border-top', 'border-bottom',
  'border-left', 'border-right', 'color', 'text-align']);
const VALUE = /^[\w#.%+ -]{1,40}$/;
const CLASS = /^(?:hljs|tml)-[a-z_-]{1,40}$/;

function classesOf(value: string | undefined): string {
  return (value ?? '').split(' ').filter((name) => CLASS.test(name)).join(' ');
}

function addStyles(element: ElementCSSInlineStyle, value: string) {
  for (const declaration of value.split(';')) {
    const [name, text] = declaration.split(':').map((part) => part.trim());
    if (name && text && MATH_STYLES.has(name) && VALUE.test(text)) element.style.setProperty(name, text);
  }
}

function elementOf(tree: Exclude<Tree, string>): Element | null {
  const { tag, attributes } = tree;
  if (tag === 'span') {
    const span = document.createElement('span');
    span.className = classesOf(attributes.class);
    return span;
  }
  if (!MATH_TAGS.has(tag)) return null;
  const element = document.createElementNS(MATHML, tag) as MathMLElement;
  for (const [name, value] of Object.entries(attributes)) {
    if (MATH_ATTRIBUTES.has(name) && VALUE.test(value)) element.setAttribute(name, value);
  }
  const classes = classesOf(attributes.class);
  if (classes) element.setAttribute('class', classes);
  if (attributes.style) addStyles(element, attributes.style);
  return element;
}

// Browsers show them by letters of their own in Unicode, which many fonts do not have.
const isGreek = (text: string) => /^[α-ωϑϕϖϰϱϵ]$/u.test(text);

// Of an element that is not known only the text is there.
export function nodesOf(trees: Tree[]): Node[] {
  return trees.flatMap((tree): Node[] => {
    if (typeof tree === 'string') return [document.createTextNode(tree)];
    const element = elementOf(tree);
    const children = nodesOf(tree.children);
    if (!element) return children;
    element.append(...children);
    if (tree.tag === 'mi' && isGreek(element.textContent ?? '')) element.setAttribute('class', 'greek');
    return [element];
  });
}
