/** The alert rules and dashboards that ship: against the metrics of real daemons, and in a real Prometheus. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { parse } from 'yaml';
import { HISTOGRAMS } from '../../../src/kit/trace/trace.ts';
import { openChronosdWithRouter } from '../../end-to-end/chronosd-with-router.ts';
import { eventually } from '../../support/eventually.ts';
import { reservePort } from '../../support/ports.ts';
import { atEnd, temporaryFolder } from '../../support/temporary.ts';
import { needs } from '../../support/tools.ts';

const FOLDER = join(import.meta.dirname, '..', '..', '..', 'docs', 'operate', 'monitoring');
const ALERTS = join(FOLDER, 'alerts.yml');

type Rules = { groups: { rules: { alert: string; expr: string }[] }[] };
type Dashboard = {
  uid: string;
  panels: { id: number; title: string; targets: { expr?: string; query?: string }[] }[];
};

const dashboards = globSync('grafana-*.json', { cwd: FOLDER })
  .toSorted()
  .map((name) => JSON.parse(readFileSync(join(FOLDER, name), 'utf8')) as Dashboard);
const alerts = (parse(readFileSync(ALERTS, 'utf8')) as Rules).groups.flatMap(({ rules }) => rules);
const panelQueries = dashboards.flatMap(({ panels }) =>
  panels.flatMap(({ targets }) => targets.flatMap(({ expr }) => (expr === undefined ? [] : [expr]))),
);

/** The names of exported distributions in Prometheus, as a collector converts them. */
const CONVERTED = Object.entries(HISTOGRAMS).map(
  ([name, [unit]]) => `${name.replaceAll('.', '_')}${unit === 's' ? '_seconds' : ''}`,
);

async function pagesOf(t: TestContext) {
  const daemons = await openChronosdWithRouter(t);
  const urls = [daemons.chronosUrl, daemons.routerUrl];
  const pages = await Promise.all(urls.map(async (url) => (await fetch(`${url}/metrics`)).text()));
  return { daemons, urls, pages };
}

test('every metric of an alert rule or a panel is one of chronosd, the router, or the exporter', async (t) => {
  const { pages } = await pagesOf(t);
  const known = new Set([...pages.join('\n').matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name!).concat(CONVERTED));
  const named = [...alerts.map(({ expr }) => expr), ...panelQueries].flatMap((expr) =>
    [
      ...expr.replaceAll(/ by \([^)]*\)/g, '').matchAll(/\b(?:chronos|router|gen_ai|messaging)_\w+(?=[{[)]| [>/]|$)/g),
    ].map(([name]) => name),
  );
  assert.ok(named.length > 30, named.join(' '));
  const unknown = named.filter((name) => !known.has(name) && !known.has(name.replace(/_(?:bucket|sum|count)$/, '')));
  assert.deepEqual(unknown, []);
});

test('dashboards and panels have ids of their own', () => {
  assert.deepEqual(
    dashboards.map(({ uid }) => uid),
    ['reveille-agents', 'reveille-chronosd'],
  );
  for (const { panels } of dashboards) {
    assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
    for (const { title, targets } of panels) assert.ok(title && targets.length > 0);
  }
});

function promtool(args: readonly string[], input?: string, cwd?: string): void {
  const { status, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8', ...(input && { input }), cwd });
  assert.equal(status, 0, `promtool ${args.join(' ')}: ${stdout}${stderr}`);
}

test('promtool accepts the rules and the metrics, and each rule fires for its cause alone', {
  skip: needs('prometheus'),
}, async (t) => {
  const folder = temporaryFolder(t);
  copyFileSync(ALERTS, join(folder, 'alerts.yml'));
  const cases = join(import.meta.dirname, 'alerts.test.yaml');
  copyFileSync(cases, join(folder, 'alerts.test.yaml'));
  promtool(['check', 'rules', ALERTS]);
  promtool(['test', 'rules', 'alerts.test.yaml'], undefined, folder);
  const tested = readFileSync(cases, 'utf8');
  for (const { alert } of alerts)
    assert.ok(tested.includes(`alertname: ${alert}`) && tested.includes(`"${alert}"`), alert);
  const { pages } = await pagesOf(t);
  for (const page of pages) promtool(['check', 'metrics', '--extended'], page);
});

test('a real Prometheus scrapes both daemons, and understands every rule and panel', {
  skip: needs('prometheus'),
}, async (t) => {
  const { urls } = await pagesOf(t);
  const folder = temporaryFolder(t);
  const targets = urls.map((url) => new URL(url).host);
  const config = {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: [ALERTS],
    scrape_configs: [{ job_name: 'reveille', static_configs: [{ targets }] }],
  };
  writeFileSync(join(folder, 'prometheus.yml'), JSON.stringify(config));
  const port = await reservePort();
  const flags = [
    `--config.file=${join(folder, 'prometheus.yml')}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
  ];
  const prometheus = spawn('prometheus', flags, { stdio: 'ignore' });
  const exited = once(prometheus, 'exit');
  atEnd(t, async () => {
    prometheus.kill();
    await exited;
  });
  type Answer<T> = { status: string; error?: string; data: T };
  const ask = async <T>(path: string): Promise<Answer<T>> => {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`);
    return (await answer.json()) as Answer<T>;
  };
  type Found = { result: { metric: Record<string, string>; value: [number, string] }[] };
  const query = (expr: string) => ask<Found>(`query?query=${encodeURIComponent(expr)}`);
  await eventually('both are scraped', async () => {
    const found = await query('up == 1').catch(() => undefined);
    return found?.data.result.length === 2;
  });
  for (const expr of panelQueries) {
    const { status, error } = await query(expr.replaceAll('$__rate_interval', '1m'));
    assert.equal(status, 'success', `${expr}: ${error}`);
  }
  const { data } = await query('chronos_in_flight');
  assert.equal(data.result.length, 1);
  type RuleStates = { groups: { rules: { name: string; health: string; state: string }[] }[] };
  const states = await eventually('all rules are evaluated', async () => {
    const rules = (await ask<RuleStates>('rules')).data.groups.flatMap((group) => group.rules);
    // Before the first scrape a chronosd is missing.
    const isSettled = rules.every(({ health, state }) => health !== 'unknown' && state === 'inactive');
    return rules.length === alerts.length && isSettled && rules;
  });
  assert.deepEqual(
    states.map(({ name, health }) => [name, health]),
    alerts.map(({ alert }) => [alert, 'ok']),
  );
});
