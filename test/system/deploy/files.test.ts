/**
 * The files of deploy/: each checked by the rules of its format, and compared with the settings and routes of the
 * daemons.
 */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { DCLinter } from 'dclint';
import { validate } from 'dockerfile-utils';
import { parse as parseToml } from 'smol-toml';
import { parseAllDocuments } from 'yaml';
import { neoSettingsSchema } from '../../../src/agents/neo/config.ts';
import { toolSettingsSchema } from '../../../src/agents/neo/tools/settings.ts';
import { chronosSettingsSchema } from '../../../src/chronos/config.ts';
import { mcpSettingsSchema } from '../../../src/chronos-mcp/mcp-settings.ts';
import { executorSettingsSchema } from '../../../src/executor/config.ts';
import { routerSettingsSchema } from '../../../src/router/config.ts';
import { DEPLOY, IMAGE, readCompose } from './containers.ts';

const read = (name: string) => readFileSync(join(DEPLOY, name), 'utf8');

const OTHERS = ['REVEILLE_HOME', 'REVEILLE_TLS_CA', 'HEALTH_URL'];
/** The variables that each daemon reads; an agent's chronos server reads those of `mcp`. */
const READ: Readonly<Record<string, ReadonlySet<string>>> = {
  chronosd: new Set([...Object.keys(chronosSettingsSchema.shape), ...OTHERS]),
  router: new Set([...Object.keys(routerSettingsSchema.shape), ...OTHERS]),
  executor: new Set([...Object.keys(executorSettingsSchema.shape), ...OTHERS]),
  neo: new Set([
    ...[neoSettingsSchema, toolSettingsSchema, mcpSettingsSchema].flatMap(({ shape }) => Object.keys(shape)),
    ...OTHERS,
  ]),
};

function assertRead(daemon: string, names: readonly string[]): void {
  const unread = names.filter((name) => !READ[daemon]!.has(name));
  assert.deepEqual(unread, [], `${daemon} reads no such variables`);
}

test('the Dockerfile is valid, and sets the variables of the test containers', () => {
  const text = read('Dockerfile');
  assert.deepEqual(
    validate(text).map(({ message, range }) => `${range.start.line + 1}: ${message}`),
    [],
  );
  const [, variables] = /^ENV (.*)$/m.exec(text)!;
  const { PATH: _, ...image } = IMAGE;
  assert.deepEqual(Object.fromEntries(variables!.split(' ').map((pair) => pair.split('='))), image);
  assert.match(text, /^USER 65532:65532$/m);
  assert.match(text, /^HEALTHCHECK /m);
});

describe('the compose file', () => {
  const anything: Record<string, string> = new Proxy({}, { get: () => 'x'.repeat(16) });
  const { services, networks } = readCompose(anything, new Map());

  test('is valid', () => {
    // The order of keys and the quoting of values are free.
    const linter = new DCLinter({ rules: {}, quiet: true, debug: false, exclude: [] });
    // Its declarations name files without their extension, so the check does not apply here.
    const results = linter.lintFiles([join(DEPLOY, 'compose.yaml')], false) as { messages: { type: string }[] }[];
    const faults = results.flatMap(({ messages }) => messages);
    assert.deepEqual(
      faults.filter(({ type }) => type === 'error'),
      [],
    );
  });

  test('gives each daemon variables that it reads, and only the rights that it needs', () => {
    for (const [name, service] of Object.entries(services)) {
      if (name === 'db') continue;
      assertRead(service.command![0]!, Object.keys(service.environment!));
      assert.deepEqual([service.read_only, service.user, service.cap_drop], [true, '65532:65532', ['ALL']], name);
    }
  });

  test('keeps every agent off the database, and publishes only the public listener on the host', () => {
    const reach = (name: string) => new Set(services[name]!.networks);
    assert.equal(reach('neo').intersection(reach('db')).size, 0);
    assert.equal(reach('executor').intersection(reach('db')).size, 0);
    assert.deepEqual(
      Object.keys(networks).filter((name) => !networks[name]?.internal),
      ['people'],
    );
    const published = Object.values(services).flatMap(({ ports = [] }) => ports);
    assert.deepEqual(published, ['127.0.0.1:8087:8087']);
  });
});

type Probe = { httpGet: { port: string; scheme: string; httpHeaders: { name: string; value: string }[] } };
type Container = {
  name: string;
  args: string[];
  ports: { name: string; containerPort: number }[];
  env: { name: string; value?: string }[];
  securityContext: object;
  [probe: string]: unknown;
};
type Workload = {
  kind: string;
  metadata: { name: string };
  spec: {
    replicas: number;
    selector: { matchLabels: object };
    template: {
      metadata: { labels: Record<string, string> };
      spec: { containers: Container[]; securityContext: object };
    };
  };
};

describe('the manifests for Kubernetes', async () => {
  const [apps, core, networking, policy] = await Promise.all([
    import('kubernetes-models/apps/v1'),
    import('kubernetes-models/v1'),
    import('kubernetes-models/networking.k8s.io/v1'),
    import('kubernetes-models/policy/v1'),
  ]);
  const kinds: Readonly<Record<string, new (data: never) => { validate(): void }>> = {
    ...{ Deployment: apps.Deployment, StatefulSet: apps.StatefulSet, Service: core.Service, Namespace: core.Namespace },
    ...{ NetworkPolicy: networking.NetworkPolicy, PodDisruptionBudget: policy.PodDisruptionBudget },
  };
  const names = globSync('kubernetes/*.yaml', { cwd: DEPLOY }).toSorted();
  const objects = names.flatMap((name) => parseAllDocuments(read(name)).map((one) => one.toJS() as Workload));
  const ofKind = (...wanted: string[]) => objects.filter(({ kind }) => wanted.includes(kind));
  const workloads = ofKind('Deployment', 'StatefulSet');

  test('match the schemas of Kubernetes, and all of them are applied', () => {
    for (const object of objects) {
      if (object.kind === 'Kustomization') continue;
      const Kind = kinds[object.kind];
      assert.ok(Kind, `${object.kind} is not checked here`);
      new Kind(object as never).validate();
    }
    const { resources } = ofKind('Kustomization')[0] as unknown as { resources: string[] };
    assert.deepEqual(
      resources.map((name) => `kubernetes/${name}`).toSorted(),
      names.filter((name) => !name.endsWith('kustomization.yaml')),
    );
  });

  test('give each daemon variables that it reads, probes by a known name, and only the rights that it needs', () => {
    for (const { metadata, spec } of workloads) {
      const { labels } = spec.template.metadata;
      assert.equal(labels.app, metadata.name);
      assert.deepEqual(spec.selector.matchLabels, { app: metadata.name });
      const [container] = spec.template.spec.containers;
      const variables = Object.fromEntries(container!.env.map(({ name, value }) => [name, value]));
      const daemon = container!.args[0]!;
      assertRead(daemon, Object.keys(variables));
      const allowed = Object.entries(variables)
        .find(([name]) => /^[A-Z]+_ALLOWED_HOSTS$/.test(name))![1]!
        .split(',');
      for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
        const { port, scheme, httpHeaders } = (container![probe] as Probe).httpGet;
        assert.ok(container!.ports.some(({ name }) => name === port));
        assert.equal(scheme, 'HTTPS');
        assert.ok(allowed.includes(httpHeaders[0]!.value));
      }
      assert.deepEqual(container!.securityContext, {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      assert.equal((spec.template.spec.securityContext as { runAsNonRoot: boolean }).runAsNonRoot, true);
    }
  });

  test('a Service and a network policy name existing objects', () => {
    const known = new Set(workloads.flatMap(({ spec }) => Object.entries(spec.template.metadata.labels).map(String)));
    const ports = new Set(
      workloads.flatMap(({ spec }) => spec.template.spec.containers[0]!.ports.map(({ name }) => name)),
    );
    const named = (JSON.stringify(ofKind('NetworkPolicy')).match(/"(?:app|role)":"[a-z-]+"/g) ?? []).map((pair) =>
      String(Object.entries(JSON.parse(`{${pair}}`))[0]),
    );
    assert.deepEqual(
      named.filter((label) => !known.has(label)),
      [],
    );
    for (const { spec } of ofKind('Service') as unknown as {
      spec: { selector: object; ports: { targetPort: string }[] };
    }[]) {
      assert.ok(known.has(String(Object.entries(spec.selector)[0])));
      assert.ok(spec.ports.every(({ targetPort }) => ports.has(targetPort)));
    }
  });
});

describe('the files for Fly', () => {
  for (const name of globSync('fly/*.toml', { cwd: DEPLOY })) {
    test(`${name} starts a daemon with variables that it reads, and checks the address where it listens`, () => {
      type Fly = {
        processes: { app: string };
        env: Record<string, string>;
        checks?: Record<string, { port: number; headers: { Host: string } }>;
        http_service?: { internal_port: number };
      };
      const { processes, env, checks = {}, http_service: publicService } = parseToml(read(name)) as unknown as Fly;
      assertRead(processes.app, Object.keys(env));
      const ports = Object.entries(env).flatMap(([variable, value]) =>
        variable.endsWith('_PORT') ? [Number(value)] : [],
      );
      for (const { port, headers } of Object.values(checks)) {
        assert.ok(ports.includes(port));
        assert.ok(Object.values(env).includes(headers.Host));
      }
      if (publicService) assert.equal(publicService.internal_port, Number(env.ROUTER_PUBLIC_PORT));
    });
  }
});
