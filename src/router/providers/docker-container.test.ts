import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  addressOf,
  type Container,
  type DockerHost,
  describeDockerHost,
  logText,
  parseDockerHost,
  secretsIn,
} from './docker-container.ts';

const LOCAL = parseDockerHost(undefined);
const REMOTE = parseDockerHost('tcp://10.0.0.5:2375');

/** The address of port 8080 of a container with these settings. */
const reached = (settings: Partial<Container>, host: DockerHost = LOCAL) =>
  addressOf({ State: { Status: 'running' }, ...settings }, 8080, host);
const published = (...bindings: { HostIp?: string; HostPort?: string }[]) => ({
  NetworkSettings: { Ports: { '8080/tcp': bindings }, Networks: { bridge: { IPAddress: '172.17.0.2' } } },
});

describe('the address of a daemon in a container', () => {
  test("is the port published on the engine's machine, whatever address it is published on", () => {
    for (const HostIp of ['0.0.0.0', '::', '', undefined]) {
      const binding = HostIp === undefined ? { HostPort: '32768' } : { HostIp, HostPort: '32768' };
      assert.equal(reached(published(binding)), 'http://127.0.0.1:32768');
      assert.equal(reached(published(binding), REMOTE), 'http://10.0.0.5:32768');
    }
    assert.equal(reached(published({ HostIp: '127.0.0.1', HostPort: '32768' })), 'http://127.0.0.1:32768');
    assert.equal(reached(published({ HostIp: '::1', HostPort: '32768' })), 'http://[::1]:32768');
    assert.equal(reached(published({ HostIp: '192.0.2.7', HostPort: '32768' }), REMOTE), 'http://192.0.2.7:32768');
  });

  test('is not a port that only programs on another machine can reach', () => {
    assert.equal(reached(published({ HostIp: '127.0.0.1', HostPort: '1' }), REMOTE), undefined);
    const both = published({ HostIp: '127.0.0.1', HostPort: '1' }, { HostIp: '0.0.0.0', HostPort: '2' });
    assert.equal(reached(both, REMOTE), 'http://10.0.0.5:2');
  });

  test('is that of the machine when the container shares its network', () => {
    assert.equal(reached({ HostConfig: { NetworkMode: 'host' } }), 'http://127.0.0.1:8080');
    assert.equal(reached({ HostConfig: { NetworkMode: 'host' } }, REMOTE), 'http://10.0.0.5:8080');
  });

  test('is that of the container on a network of this machine', () => {
    const on = (network: object) => reached({ NetworkSettings: { Ports: {}, Networks: { mine: network } } });
    assert.equal(on({ IPAddress: '172.18.0.3' }), 'http://172.18.0.3:8080');
    assert.equal(on({ IPAddress: '', GlobalIPv6Address: 'fd00::3' }), 'http://[fd00::3]:8080');
    assert.equal(reached({ NetworkSettings: { IPAddress: '172.17.0.9' } }), 'http://172.17.0.9:8080');
    assert.equal(reached({ NetworkSettings: { IPAddress: '172.17.0.9' } }, REMOTE), undefined);
  });

  test('is undefined when the container has none', () => {
    assert.equal(reached({}), undefined);
    assert.equal(
      reached({ NetworkSettings: { Ports: { '8080/tcp': null, '9/tcp': [{ HostPort: '1' }] } } }),
      undefined,
    );
    for (const HostPort of ['', '0', 'x', '8080 ']) {
      const settings = { NetworkSettings: { Ports: { '8080/tcp': [{ HostIp: '0.0.0.0', HostPort }] } } };
      assert.equal(reached(settings), undefined);
    }
  });
});

test('the text of a log is read from its frames, even if the last one is truncated', () => {
  const frame = (text: string, length = Buffer.byteLength(text)) => {
    const header = Buffer.from([2, 0, 0, 0, 0, 0, 0, 0]);
    header.writeUInt32BE(length, 4);
    return Buffer.concat([header, Buffer.from(text)]);
  };
  const body = Buffer.concat([frame('größer\n'), frame(''), frame('second\n')]);
  assert.equal(logText(body, false), 'größer\nsecond\n');
  assert.equal(logText(Buffer.concat([body, frame('cut', 4_000_000_000)]), false), 'größer\nsecond\ncut');
  assert.equal(logText(body.subarray(0, 5), false), '');
  assert.equal(logText(Buffer.from('plain\n'), true), 'plain\n');
});

test('the secrets of a container are the values of variables with secret-like names', () => {
  const Env = ['PATH=/bin', 'API_KEY=one=two', 'DB_PASSWORD=', '=odd', 'TOKEN', 'MY_TOKEN=three'];
  assert.deepEqual(secretsIn({ State: { Status: 'running' }, Config: { Env } }), ['one=two', '', 'three']);
});

test('the forms of DOCKER_HOST are parsed, and the usual socket is the default', () => {
  const forms: [string | undefined, string][] = [
    [undefined, 'unix:///var/run/docker.sock'],
    ['', 'unix:///var/run/docker.sock'],
    ['unix:///run/user/1000/podman/podman.sock', 'unix:///run/user/1000/podman/podman.sock'],
    ['tcp://10.0.0.5:2375', 'tcp://10.0.0.5:2375'],
    ['tcp://engine.internal', 'tcp://engine.internal:2375'],
    ['tcp://engine.internal:80', 'tcp://engine.internal:80'],
    ['tcp://engine.internal:80/', 'tcp://engine.internal:80'],
    ['http://localhost:4243/', 'tcp://localhost:4243'],
    ['tcp://[fd00::1]:2375', 'tcp://[fd00::1]:2375'],
  ];
  for (const [value, meant] of forms) assert.equal(describeDockerHost(parseDockerHost(value)), meant, value);
});

test('any other form is rejected with its value and the supported forms', () => {
  const wrong = [
    'ssh://me@host',
    'https://host:2376',
    'npipe:////./pipe/docker_engine',
    'fd://',
    '/var/run/docker.sock',
    'unix://relative',
    'tcp://',
    'tcp://host:99999',
    'tcp://user:pass@host',
    'tcp://host/path',
  ];
  for (const value of wrong)
    assert.throws(
      () => parseDockerHost(value),
      /^ReveilleError: DOCKER_HOST must be unix:\/\/\/path\/to\.sock or tcp:\/\/host:port \(got "/,
      value,
    );
});
