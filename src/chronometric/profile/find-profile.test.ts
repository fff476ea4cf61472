import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { findProfile, newProfileLocation } from './find-profile.ts';

const HOME = '/home/ada';
const everything = {
  HOME,
  REVEILLE_PROFILE: '/one.yaml',
  NEURODOCK_PROFILE_PATH: '/two.yaml',
  XDG_CONFIG_HOME: '/xdg',
};
const LOCATIONS = [
  '/one.yaml',
  '/two.yaml',
  '/xdg/reveille/profile.yaml',
  `${HOME}/.config/reveille/profile.yaml`,
  `${HOME}/.neurodock/profile.yaml`,
];
const only =
  (...paths: string[]) =>
  (path: string) =>
    paths.includes(path);

describe('the location of a profile', () => {
  test('the documented order applies', () => {
    const environment: Record<string, string> = { ...everything };
    assert.equal(findProfile(environment, only(...LOCATIONS)).path, LOCATIONS[0]);
    delete environment.REVEILLE_PROFILE;
    assert.equal(findProfile(environment, only(...LOCATIONS)).path, LOCATIONS[1]);
    delete environment.NEURODOCK_PROFILE_PATH;
    assert.equal(findProfile(environment, only(...LOCATIONS)).path, LOCATIONS[2]);
    assert.equal(findProfile(environment, only(...LOCATIONS.slice(3))).path, LOCATIONS[3]);
    assert.deepEqual(findProfile(environment, only(LOCATIONS[4]!)), {
      path: LOCATIONS[4],
      from: '~/.neurodock/profile.yaml',
    });
    assert.deepEqual(findProfile(environment, only()), {});
  });

  test('a path in a variable has precedence over all other locations', () => {
    const { path, missing } = findProfile(everything, only(...LOCATIONS.slice(1)));
    assert.equal(path, '/one.yaml');
    assert.match(missing!, /^REVEILLE_PROFILE names \/one\.yaml, which does not exist; /);
    assert.match(findProfile({ ...everything, REVEILLE_PROFILE: '' }, only()).missing!, /^NEURODOCK_PROFILE_PATH /);
  });

  test('~ in a variable is the home folder', () => {
    const at = (path: string) => findProfile({ HOME, REVEILLE_PROFILE: path }, () => true).path;
    assert.equal(at('~/my profile.yaml'), `${HOME}/my profile.yaml`);
    assert.equal(at('/srv/~/p.yaml'), '/srv/~/p.yaml');
  });

  test('a relative XDG_CONFIG_HOME is ignored, and without a home folder no location exists', () => {
    assert.equal(findProfile({ HOME, XDG_CONFIG_HOME: 'here' }, () => true).path, LOCATIONS[3]);
    assert.deepEqual(
      findProfile({}, () => true),
      {},
    );
    assert.equal(findProfile({ USERPROFILE: HOME }, () => true).path, LOCATIONS[3]);
  });
});

test('a new profile is written to the first location, and the file that it hides is reported', () => {
  assert.deepEqual(newProfileLocation({ HOME }, only()), { path: LOCATIONS[3] });
  assert.deepEqual(newProfileLocation({ HOME }, only(LOCATIONS[4]!)), { path: LOCATIONS[3], hides: LOCATIONS[4] });
  assert.deepEqual(newProfileLocation({ HOME, XDG_CONFIG_HOME: '/xdg' }, only()), { path: LOCATIONS[2] });
  assert.equal(newProfileLocation(everything, only())?.path, LOCATIONS[0]);
  assert.equal(newProfileLocation({}, only()), undefined);
});
