/**
 * Untrusted text on a page, always escaped. Invisible characters, direction changes and lookalikes are shown as code
 * points in an element that the text itself cannot create.
 */
import { html } from 'hono/html';
import { marked } from '../kit/text/visible.ts';

export type Html = ReturnType<typeof html>;

export const NOTHING: Html = html``;

/** The whole text with its line breaks. */
export function shown(text: string): Html {
  const parts = marked(text.replace(/\r\n/g, '\n'));
  return html`${parts.map(({ text: part, isEscaped }) => (isEscaped ? html`<span class="odd" title="invisible or misleading character">${part}</span>` : part))}`;
}

/** The marked value of a control, which cannot mark it itself; nothing for a value without such characters. */
export function controlNote(value: string | undefined): Html {
  const text = (value ?? '').replace(/\r\n/g, '\n');
  if (!marked(text).some(({ isEscaped }) => isEscaped)) return NOTHING;
  return html`<p class="hint bad">The value has invisible or misleading characters:</p>${block(text)}`;
}

/** The beginning of a text on one line. */
export function brief(text: string, most = 120): Html {
  const line = text.trim().replace(/\s+/g, ' ');
  const characters = [...line];
  return shown(characters.length > most ? `${characters.slice(0, most - 1).join('')}…` : line);
}

/** Untrusted text as a block; `dir=auto` isolates its direction from the page. */
export const block = (text: string, name = 'quote'): Html => html`<div class="${name}" dir="auto">${shown(text)}</div>`;
