/**
 * Markdown of the agent as HTML. Markup in the text stays text, images are not loaded, and links lead to web and mail
 * addresses alone, in a new window. Misleading characters are marked as in every other text.
 */
import { raw } from 'hono/html';
import markdownIt from 'markdown-it';
import { type Html, shown } from './shown.ts';

const parser = markdownIt({ html: false, linkify: false, breaks: true }).disable('image');
parser.validateLink = (address) => /^(?:https?:\/\/|mailto:)/i.test(address);

const marked = (text: string): string => String(shown(text));
const { rules } = parser.renderer;
rules.text = (tokens, at) => marked(tokens[at]!.content);
rules.code_inline = (tokens, at) => `<code>${marked(tokens[at]!.content)}</code>`;
const block: typeof rules.fence = (tokens, at) =>
  `<pre tabindex="0" aria-label="Code"><code>${marked(tokens[at]!.content)}</code></pre>\n`;
rules.fence = block;
rules.code_block = block;
// The page has the headings of levels 1 and 2.
for (const rule of ['heading_open', 'heading_close'])
  rules[rule] = (tokens, at, options, _env, self) => {
    tokens[at]!.tag = `h${Math.min(6, Number(tokens[at]!.tag.slice(1)) + 2)}`;
    return self.renderToken(tokens, at, options);
  };
rules.table_open = () => '<div class="table" tabindex="0" role="group" aria-label="Table"><table>\n';
rules.table_close = () => '</table></div>\n';
rules.link_open = (tokens, at, options, _env, self) => {
  tokens[at]!.attrSet('rel', 'noopener noreferrer nofollow');
  tokens[at]!.attrSet('target', '_blank');
  return self.renderToken(tokens, at, options);
};

/** Longer replies are shown as plain text: rendering must not keep the server busy. */
const MAX_CHARACTERS = 100_000;

export function markdown(text: string): Html {
  if (text.length > MAX_CHARACTERS) return shown(text);
  return raw(parser.render(text.replace(/\r\n/g, '\n'))) as Html;
}
