/**
 * `npm run chart`: writes the Helm chart `deploy/helm/reveille` from the manifests of `deploy/kubernetes`. With the
 * default values, `values.yaml`, both give the same objects. A replacement that finds nothing is an error, so a change of a
 * manifest cannot leave a value without effect.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { ROOT, readManifest } from './manifest.ts';

const CHART = 'deploy/helm/reveille';
const { version: VERSION, description: DESCRIPTION } = readManifest(ROOT) as unknown as Record<string, string>;

const text = z.string().min(1);
const quantity = text.regex(/^\d+(?:\.\d+)?(?:m|[KMGT]i?)?$/, 'must be a quantity of Kubernetes, such as 256Mi');
const daemon = { cpu: quantity, memory: quantity, memoryLimit: quantity };
const name = text.regex(/^[a-z0-9](?:[a-z0-9-]{0,40}[a-z0-9])?$/, 'must be lower-case letters, digits and hyphens');

/** The values of the chart; `helm` refuses others. */
export const chartValuesSchema = z.strictObject({
  image: z.strictObject({ repository: text, tag: z.string() }),
  secret: name,
  publicHost: text,
  chronosd: z.strictObject({ replicas: z.int().min(1), ...daemon }),
  router: z.strictObject({ storage: quantity, ...daemon }),
  executor: z.strictObject({ storage: quantity, ...daemon }),
  agents: z.array(z.strictObject({ name, user: text.optional(), storage: quantity.optional() })),
  agent: z.strictObject({ storage: quantity, ...daemon }),
  /** Helm adds it where the chart is part of another one. */
  global: z.looseObject({}).optional(),
});

type Replacement = readonly [from: RegExp, to: string];

/** @param root where templates find the chart's objects: `$` within a loop */
const common = (root: '' | '$'): Replacement[] => [
  [
    /^( +)image: reveille$/gm,
    `$1image: "{{ ${root}.Values.image.repository }}:{{ ${root}.Values.image.tag | default ${root}.Chart.AppVersion }}"`,
  ],
  [/\.reveille\.svc$/gm, `.{{ ${root}.Release.Namespace }}.svc`],
  [/^( +)name: reveille$/gm, `$1name: {{ ${root}.Values.secret }}`],
];

const resources = (values: string): Replacement[] => [
  [/^( +)cpu: 100m$/gm, `$1cpu: {{ ${values}.cpu }}`],
  [/^( +)memory: 256Mi$/gm, `$1memory: {{ ${values}.memory }}`],
  [/^( +)memory: 512Mi$/gm, `$1memory: {{ ${values}.memoryLimit }}`],
];

const storage = (size: string): Replacement => [/^( +)storage: \d+Gi$/gm, `$1storage: {{ ${size} }}`];

/** The replacements of each manifest, in their order. */
const TEMPLATES: Readonly<Record<string, readonly Replacement[]>> = {
  chronosd: [
    ...common(''),
    ...resources('.Values.chronosd'),
    [/^( +)replicas: 2$/gm, '$1replicas: {{ .Values.chronosd.replicas }}'],
  ],
  router: [
    ...common(''),
    ...resources('.Values.router'),
    storage('.Values.router.storage'),
    [/reveille\.example\.com/g, '{{ .Values.publicHost }}'],
  ],
  executor: [...common(''), ...resources('.Values.executor'), storage('.Values.executor.storage')],
  agent: [
    ...common('$'),
    ...resources('$.Values.agent'),
    storage('.storage | default $.Values.agent.storage'),
    [/agent-ada/g, 'agent-{{ .name }}'],
    [/^( +)value: ada$/gm, '$1value: {{ .user | default .name | quote }}'],
    [/^# .*\n/, ''],
    [/^/, '{{- range .Values.agents }}\n---\n'],
    [/$/, '{{- end }}\n'],
  ],
  'network-policy': [],
};

function templateOf(manifest: string, replacements: readonly Replacement[]): string {
  const source = readFileSync(join(ROOT, 'deploy', 'kubernetes', `${manifest}.yaml`), 'utf8');
  return replacements.reduce((done, [from, to]) => {
    if (done.search(from) === -1) throw new Error(`deploy/kubernetes/${manifest}.yaml has nothing like ${from}`);
    return done.replace(from, to);
  }, source);
}

/** The generated files of the chart, by path within the repository. */
export function chartFiles(): Record<string, string> {
  const chart = {
    apiVersion: 'v2',
    name: 'reveille',
    description: DESCRIPTION,
    type: 'application',
    version: VERSION,
    appVersion: VERSION,
    kubeVersion: '>=1.27.0-0',
  };
  const lines = Object.entries(chart).map(([key, value]) => `${key}: ${JSON.stringify(value)}\n`);
  const schema = z.toJSONSchema(chartValuesSchema, { target: 'draft-7' });
  const templates = Object.entries(TEMPLATES).map(([manifest, replacements]) => [
    `${CHART}/templates/${manifest}.yaml`,
    templateOf(manifest, replacements),
  ]);
  return {
    [`${CHART}/Chart.yaml`]: `# Made by "npm run chart".\n${lines.join('')}`,
    [`${CHART}/values.schema.json`]: `${JSON.stringify(schema, null, 2)}\n`,
    ...Object.fromEntries(templates),
  };
}

if (import.meta.main)
  for (const [file, content] of Object.entries(chartFiles())) {
    mkdirSync(dirname(join(ROOT, file)), { recursive: true });
    writeFileSync(join(ROOT, file), content);
  }
