/**
 * Text of others on a page. All of it is text; characters that cannot be seen, that turn the line around, or that look
 * like others are written by their code points, in a mark that no text of theirs can make.
 */
import { html } from 'hono/html';
import { marked } from '../kit/text/visible.ts';

export type Html = ReturnType<typeof html>;

export const NOTHING: Html = html``;

/** Text as it was written, its lines kept. */
export function shown(text: string): Html {
  const parts = marked(text.replace(/\r\n/g, '\n'));
  return html`${parts.map(({ text: part, isEscaped: isOdd }) => (isOdd ? html`<span class="odd" title="a character that cannot be seen, or that looks like another">${part}</span>` : part))}`;
}

/** The beginning of a text on one line. */
export function brief(text: string, most = 120): Html {
  const line = text.trim().replace(/\s+/g, ' ');
  const characters = [...line];
  return shown(characters.length > most ? `${characters.slice(0, most - 1).join('')}…` : line);
}

/** Text of others in a block of its own; `dir=auto` keeps what they wrote from turning ours around. */
export const block = (text: string, name = 'words'): Html => html`<div class="${name}" dir="auto">${shown(text)}</div>`;
