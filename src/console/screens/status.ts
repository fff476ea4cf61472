/** Health: what the doctor says, versions, and where data lies. */
import { html } from 'hono/html';
import { VERSION } from '../../wire/version.ts';
import type { Check } from '../desk.ts';
import { missing, type Page } from '../page.ts';
import { type Html, NOTHING, shown } from '../shown.ts';
import type { RequestContext } from '../request-context.ts';

const WORDS = { ok: 'ok', note: 'note', warning: 'warning', broken: 'broken' } as const;
const ORDER = ['broken', 'warning', 'note', 'ok'] as const;

const row = ({ name, status, detail, remedy }: Check): Html =>
  html`<li class="check ${status}"><span class="state ${status}">${WORDS[status]}</span><div><strong>${shown(name)}</strong><p>${shown(detail)}</p>${remedy === undefined ? NOTHING : html`<p class="remedy">→ ${shown(remedy)}</p>`}</div></li>`;

function verdict(checks: readonly Check[]): Html {
  const count = (status: Check['status']) => checks.filter((check) => check.status === status).length;
  const [broken, warnings] = [count('broken'), count('warning')];
  if (broken > 0) return html`<p class="notice bad">${broken} of ${checks.length} checks failed.</p>`;
  if (warnings > 0)
    return html`<p class="notice">It works, with ${warnings === 1 ? 'a warning' : `${warnings} warnings`}.</p>`;
  return html`<p class="notice good">All is well: ${checks.length} checks.</p>`;
}

export async function healthScreen({ backend, reads }: RequestContext): Promise<Page> {
  const places = html`<h2>Where things are</h2><dl class="facts"><div><dt>version</dt><dd>${VERSION}, Node ${process.versions.node}</dd></div>${backend.places.map(({ name, where }) => html`<div><dt>${name}</dt><dd><code>${shown(where)}</code></dd></div>`)}</dl>`;
  const { health } = backend;
  if ('missing' in health)
    return {
      screen: 'health',
      title: 'Health',
      main: html`<h1>Health</h1>${missing('No checks from here', health.missing)}${places}`,
    };
  const checks = [...(await reads.read(`${backend.user} health`, health.there))];
  checks.sort((one, other) => ORDER.indexOf(one.status) - ORDER.indexOf(other.status));
  const main = html`<h1>Health</h1>${verdict(checks)}<ul class="checks">${checks.map(row)}</ul>
<p><a class="button" href="health">Look again</a> <a class="button" href="notices">Being told</a></p>${places}`;
  return { screen: 'health', title: 'Health', main };
}
