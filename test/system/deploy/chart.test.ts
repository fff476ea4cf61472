/** The Helm chart: generated from the manifests, and with its default values the same objects. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parse, parseAllDocuments } from 'yaml';
import { chartFiles, chartValuesSchema } from '../../../packaging/chart.ts';
import { ROOT } from '../../../packaging/manifest.ts';
import { VERSION } from '../../../src/wire/version.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { needs } from '../../support/tools.ts';
import { DEPLOY } from './containers.ts';

const CHART = join(DEPLOY, 'helm', 'reveille');
type Values = Record<string, unknown>;
type Scope = { readonly root: Values; readonly dot: Values };

/** Evaluates the expressions that the chart uses: a path, `default` and `quote`. */
function evaluate(expression: string, { root, dot }: Scope): unknown {
  const read = (path: string) => {
    const [from, names] = path.startsWith('$.') ? [root, path.slice(2)] : [dot, path.slice(1)];
    return names.split('.').reduce<unknown>((value, name) => (value as Values | undefined)?.[name], from);
  };
  return expression.split(' | ').reduce<unknown>((value, step) => {
    if (/^\$?\.[\w.]+$/.test(step)) return read(step);
    const [, fallback] = /^default (\$?\.[\w.]+)$/.exec(step) ?? [];
    if (fallback !== undefined) return value || read(fallback);
    if (step === 'quote') return JSON.stringify(String(value));
    throw new Error(`the chart uses ${step}, which this test cannot evaluate`);
  }, undefined);
}

function fill(template: string, scope: Scope): string {
  return template.replaceAll(/\{\{ (.+?) \}\}/g, (_, expression: string) => {
    const value = evaluate(expression, scope);
    assert.notEqual(value ?? '', '', `${expression} has a value`);
    return String(value);
  });
}

/** Renders the chart as Helm does, as far as the chart goes. */
function render(values: Values, namespace: string): string {
  const { appVersion } = parse(readFileSync(join(CHART, 'Chart.yaml'), 'utf8'));
  const root = { Values: values, Release: { Namespace: namespace }, Chart: { AppVersion: appVersion } };
  return globSync('templates/*.yaml', { cwd: CHART })
    .map((name) => {
      const text = readFileSync(join(CHART, name), 'utf8');
      const [, list, body] = /^\{\{- range \.Values\.(\w+) \}\}\n(.*)\{\{- end \}\}\n$/s.exec(text) ?? [];
      if (list === undefined) return fill(text, { root, dot: root });
      return (values[list] as Values[]).map((dot) => fill(body!, { root, dot })).join('');
    })
    .join('---\n');
}

type Object = { kind: string; metadata: { name: string } };

/** The objects of a stream of documents, in an order that does not depend on their files. */
function objectsOf(text: string): Object[] {
  const objects = parseAllDocuments(text).flatMap((one) => (one.toJS() as Object | null) ?? []);
  const key = ({ kind, metadata: { name } }: Object) => `${kind} ${name}`;
  return objects.toSorted((one, other) => (key(one) < key(other) ? -1 : 1));
}

/** What `kubectl apply -k` applies, but for the namespace and the image's tag. */
function manifests(): Object[] {
  const texts = globSync('kubernetes/*.yaml', { cwd: DEPLOY })
    .filter((name) => !/(?:kustomization|namespace)\.yaml$/.test(name))
    .map((name) => readFileSync(join(DEPLOY, name), 'utf8'));
  return objectsOf(texts.join('---\n').replaceAll('image: reveille\n', `image: reveille:${VERSION}\n`));
}

const defaults = (): Values => parse(readFileSync(join(CHART, 'values.yaml'), 'utf8'));
const OTHERS = {
  image: { repository: 'registry.example.com/reveille', tag: '9.9.9' },
  secret: 'tokens',
  publicHost: 'alarms.example.com',
  chronosd: { replicas: 5, cpu: '1', memory: '1Gi', memoryLimit: '2Gi' },
  router: { storage: '3Gi', cpu: '2', memory: '3Gi', memoryLimit: '4Gi' },
  executor: { storage: '7Gi', cpu: '3', memory: '5Gi', memoryLimit: '6Gi' },
  agents: [
    { name: 'bob', storage: '9Gi' },
    { name: 'eve', user: 'Eve.Smith' },
  ],
  agent: { storage: '8Gi', cpu: '4', memory: '7Gi', memoryLimit: '8Gi' },
};

test('the checked-in chart equals the output of "npm run chart", and has no other files but its values', () => {
  const files = chartFiles();
  for (const [name, text] of Object.entries(files)) assert.equal(readFileSync(join(ROOT, name), 'utf8'), text, name);
  const found = globSync('deploy/helm/**/*.*', { cwd: ROOT });
  const values = join('deploy', 'helm', 'reveille', 'values.yaml');
  assert.deepEqual(found.toSorted(), [...Object.keys(files), values].toSorted());
  chartValuesSchema.parse(defaults());
});

test('with its default values the chart gives the objects of deploy/kubernetes', () => {
  assert.deepEqual(objectsOf(render(defaults(), 'reveille')), manifests());
});

test('every value has an effect, and nothing of the defaults remains', () => {
  chartValuesSchema.parse(OTHERS);
  const text = render(OTHERS, 'team');
  for (const word of [/\bada\b/, /\.reveille\.svc/, /reveille\.example\.com/, /image: "?reveille:/, /name: reveille$/m])
    assert.doesNotMatch(text, word);
  const leaves = (value: unknown): string[] =>
    typeof value === 'object' && value !== null ? Object.values(value).flatMap(leaves) : [String(value)];
  for (const leaf of leaves(OTHERS)) assert.ok(text.includes(leaf), leaf);
  const names = objectsOf(text).flatMap(({ kind, metadata }) => (kind === 'StatefulSet' ? [metadata.name] : []));
  assert.deepEqual(names, ['agent-bob', 'agent-eve', 'executor', 'router']);
  assert.match(text, /value: "Eve\.Smith"/);
  const alone = objectsOf(render({ ...OTHERS, agents: [] }, 'team'));
  assert.equal(alone.filter(({ metadata }) => metadata.name.startsWith('agent-')).length, 0);
});

test('wrong values are refused by the schema of the chart', () => {
  for (const wrong of [
    { replica: 1 },
    { chronosd: { ...OTHERS.chronosd, replicas: 0 } },
    { agents: [{ name: 'Bob' }] },
    { agents: [{ name: 'bob\n' }] },
    { router: { ...OTHERS.router, storage: 'much' } },
  ])
    assert.equal(chartValuesSchema.safeParse({ ...OTHERS, ...wrong }).success, false, JSON.stringify(wrong));
});

describe('Helm itself', { skip: needs('helm') }, () => {
  const helm = (...args: string[]) =>
    execFileSync('helm', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  const template = (namespace: string, ...args: string[]) =>
    objectsOf(helm('template', 'reveille', CHART, '--namespace', namespace, ...args));

  test('accepts the chart, and renders the objects of deploy/kubernetes', () => {
    helm('lint', '--strict', CHART);
    assert.deepEqual(template('reveille'), manifests());
  });

  test('renders other values like this test, and refuses wrong ones', (t) => {
    const file = join(temporaryFolder(t), 'values.json');
    writeFileSync(file, JSON.stringify(OTHERS));
    assert.deepEqual(template('team', '--values', file), objectsOf(render(OTHERS, 'team')));
    assert.throws(() => template('team', '--set', 'chronosd.replicas=0'), /replicas/);
  });
});
