import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { findProfile, newProfilePlace } from './find-profile.ts';

const HOME = '/home/ada';
const everything = {
  HOME,
  REVEILLE_PROFILE: '/one.yaml',
  NEURODOCK_PROFILE_PATH: '/two.yaml',
  XDG_CONFIG_HOME: '/xdg',
};
const PLACES = [
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

describe('a profile is looked for', () => {
  test('in the order that is promised', () => {
    const environment: Record<string, string> = { ...everything };
    assert.equal(findProfile(environment, only(...PLACES)).path, PLACES[0]);
    delete environment.REVEILLE_PROFILE;
    assert.equal(findProfile(environment, only(...PLACES)).path, PLACES[1]);
    delete environment.NEURODOCK_PROFILE_PATH;
    assert.equal(findProfile(environment, only(...PLACES)).path, PLACES[2]);
    assert.equal(findProfile(environment, only(...PLACES.slice(3))).path, PLACES[3]);
    assert.deepEqual(findProfile(environment, only(PLACES[4]!)), {
      path: PLACES[4],
      from: '~/.neurodock/profile.yaml',
    });
    assert.deepEqual(findProfile(environment, only()), {});
  });

  test('where a variable says, and nowhere else', () => {
    const { path, missing } = findProfile(everything, only(...PLACES.slice(1)));
    assert.equal(path, '/one.yaml');
    assert.match(missing!, /^REVEILLE_PROFILE names \/one\.yaml, which does not exist; /);
    assert.match(findProfile({ ...everything, REVEILLE_PROFILE: '' }, only()).missing!, /^NEURODOCK_PROFILE_PATH /);
  });

  test('below the home folder where the variable writes it as ~', () => {
    const at = (path: string) => findProfile({ HOME, REVEILLE_PROFILE: path }, () => true).path;
    assert.equal(at('~/my profile.yaml'), `${HOME}/my profile.yaml`);
    assert.equal(at('/srv/~/p.yaml'), '/srv/~/p.yaml');
  });

  test('not below a relative XDG_CONFIG_HOME, and nowhere without a home', () => {
    assert.equal(findProfile({ HOME, XDG_CONFIG_HOME: 'here' }, () => true).path, PLACES[3]);
    assert.deepEqual(
      findProfile({}, () => true),
      {},
    );
    assert.equal(findProfile({ USERPROFILE: HOME }, () => true).path, PLACES[3]);
  });
});

test('a new profile goes where it is found, and says what it hides', () => {
  assert.deepEqual(newProfilePlace({ HOME }, only()), { path: PLACES[3] });
  assert.deepEqual(newProfilePlace({ HOME }, only(PLACES[4]!)), { path: PLACES[3], hides: PLACES[4] });
  assert.deepEqual(newProfilePlace({ HOME, XDG_CONFIG_HOME: '/xdg' }, only()), { path: PLACES[2] });
  assert.equal(newProfilePlace(everything, only())?.path, PLACES[0]);
  assert.equal(newProfilePlace({}, only()), undefined);
});
