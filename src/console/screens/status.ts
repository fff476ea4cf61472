/** Status: the checks of the doctor, versions and locations of data. */
import { html } from 'hono/html';
import { VERSION } from '../../wire/version.ts';
import type { Check } from '../backend.ts';
import { missing, type Page, pageHead } from '../page.ts';
import type { RequestContext } from '../request-context.ts';
import { type Html, NOTHING, shown } from '../shown.ts';

const ORDER = ['broken', 'warning', 'note', 'ok'] as const;
const NAMES: Readonly<Record<Check['status'], string>> = {
  ok: 'OK',
  note: 'Note',
  warning: 'Warning',
  broken: 'Failed',
};

const row = ({ name, status, detail, remedy }: Check): Html =>
  html`<li class="check"><span class="state ${status}">${NAMES[status]}</span><div><strong>${shown(name)}</strong><p class="dim">${shown(detail)}</p>${remedy === undefined ? NOTHING : html`<p class="remedy">${shown(remedy)}</p>`}</div></li>`;

const counted = (count: number, what: string) => `${count} ${what}${count === 1 ? '' : 's'}`;

function summary(checks: readonly Check[]): Html {
  const count = (status: Check['status']) => checks.filter((check) => check.status === status).length;
  const [broken, warnings] = [count('broken'), count('warning')];
  if (broken > 0) return html`<p class="notice bad">${broken} of ${checks.length} checks failed.</p>`;
  if (warnings > 0) return html`<p class="notice">Everything works, with ${counted(warnings, 'warning')}.</p>`;
  return html`<p class="notice good">Everything works: ${counted(checks.length, 'check')} passed.</p>`;
}

/** Checks that passed are folded. */
function checkList(checks: readonly Check[]): Html {
  const sorted = checks.toSorted((one, other) => ORDER.indexOf(one.status) - ORDER.indexOf(other.status));
  const [open, passed] = [
    sorted.filter(({ status }) => status !== 'ok'),
    sorted.filter(({ status }) => status === 'ok'),
  ];
  return html`${open.length === 0 ? NOTHING : html`<ul class="checks">${open.map(row)}</ul>`}
${passed.length === 0 ? NOTHING : html`<details class="folded"><summary>${counted(passed.length, 'passed check')}</summary><ul class="checks">${passed.map(row)}</ul></details>`}`;
}

/** `status`. */
export async function statusScreen({ backend, reads }: RequestContext): Promise<Page> {
  const about = { screen: 'status', title: 'Status' } as const;
  const facts = html`<h2>Installation</h2><dl class="facts card"><div><dt>Version</dt><dd>${VERSION}, Node ${process.versions.node}</dd></div>${backend.places.map(({ name, where }) => html`<div><dt>${name.slice(0, 1).toUpperCase()}${name.slice(1)}</dt><dd><code>${shown(where)}</code></dd></div>`)}</dl>`;
  const { health } = backend;
  if ('missing' in health)
    return {
      ...about,
      main: html`${pageHead('Status')}${missing('Checks are not available', health.missing)}${facts}`,
    };
  const checks = await reads.read(`${backend.user} health`, health.there);
  const actions = html`<a class="button" href="notifications">Notifications</a><a class="button" href="status">Check again</a>`;
  return {
    ...about,
    main: html`${pageHead('Status', NOTHING, actions)}${summary(checks)}${checkList(checks)}${facts}`,
  };
}
