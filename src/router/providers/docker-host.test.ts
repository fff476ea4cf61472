import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeDockerHost, parseDockerHost } from './docker-host.ts';

test('the forms of DOCKER_HOST are read, and the usual socket is the default', () => {
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

test('any other form is refused with its value and what is supported', () => {
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
