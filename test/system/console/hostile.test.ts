/**
 * What must not come in: names that are bound anew, pages of others, forms that are not ours, cookies and codes that are
 * forged, stolen or used. Nothing of it may be accepted; the tests say how much was tried.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { createServer, request } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { makeCode } from '../../../src/console/sessions.ts';
import { saying } from '../../../src/kit/model/testing/model-endpoint.ts';
import { startBrowser, type TestBrowser } from '../../support/browser.ts';
import { listening, sharedOwner } from '../../support/temporary.ts';
import { type Installation, startInstallation } from './bench.ts';

type Sent = { method?: string; headers?: Record<string, string>; body?: string };
type Got = { status: number; text: string; cookie: string | undefined; headers: Record<string, unknown> };

/** Sends exactly the given headers, including `Host` and `Origin`. */
function send(url: string, { method = 'GET', headers = {}, body }: Sent = {}): Promise<Got> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          text,
          cookie: response.headers['set-cookie']?.[0],
          headers: response.headers,
        }),
      );
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

/** `npm run test:rounds` makes the full number of attempts. */
const TRIES = process.env.REVEILLE_ROUNDS === 'all' ? 10_000 : 300;
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

describe('refused requests', () => {
  const owner = sharedOwner();
  let installation: Installation;
  let browser: TestBrowser;
  let origin: string;
  /** A valid session. */
  let base: string;
  let cookie: string;
  let csrf: string;

  before(async () => {
    [installation, browser] = await Promise.all([startInstallation(owner, saying('Yes.')), startBrowser(owner)]);
    origin = installation.run.public_url!;
    const opened = await send(await installation.address());
    cookie = opened.cookie!.split(';')[0]!;
    base = /Path=(\/~[^;]+)/.exec(opened.cookie!)![1]!;
    await installation.reveille('alarm', 'set', 'the only one', 'in 5 hours', '--label', 'only');
    const page = await send(`${origin}${base}alarms`, { headers: { cookie } });
    assert.equal(page.status, 200);
    csrf = /data-csrf="([^"]+)"/.exec(page.text)![1]!;
  });
  after(() => owner.end());

  const alarms = async () => (await installation.reveille('alarm', 'list', '--all')).split('\n').length;
  /** A write that creates an alarm if it is accepted. */
  const attempt = (more: Sent) =>
    send(`${origin}${base}alarms/new`, {
      method: 'POST',
      ...more,
      headers: { cookie, origin, ...FORM, ...more.headers },
      body: more.body ?? `csrf=${csrf}&do=set&message=stolen&when=in+2+hours`,
    });

  test('the same write is accepted from a page of the console', async () => {
    const count = await alarms();
    assert.equal((await attempt({})).status, 303);
    assert.equal(await alarms(), count + 1);
  });

  test('the host name is checked first: 0 of 40 foreign names are accepted with a valid cookie', async (t) => {
    const names = [
      'evil.example',
      'localhost.evil.example',
      '127.0.0.1.evil.example',
      '0.0.0.0',
      '[::ffff:7f00:1]',
      'evil.example:8087',
      '127.1',
      '2130706433',
      'a@127.0.0.1',
      'localhost.',
    ];
    const paths = ['', 'alarms', 'approvals', 'live'];
    let accepted = 0;
    for (const host of names)
      for (const path of paths)
        if ((await send(`${origin}${base}${path}`, { headers: { host, cookie } })).status < 400) accepted++;
    t.diagnostic(`${names.length * paths.length} tried, ${accepted} accepted`);
    assert.equal(accepted, 0);
  });

  test('each control of the form of an alarm marks invisible and reversed characters of its value', async () => {
    const control = /<(?:input|textarea)[^>]*? name="([^"]+)"[^>]*>(?:\n([^<]*)<\/textarea>)?/g;
    const isText = ([tag]: RegExpMatchArray) => !/type="(?:hidden|checkbox)"/.test(tag);
    const pageOf = async (path: string, sent: Sent = {}) =>
      (await send(`${origin}${base}${path}`, { ...sent, headers: { cookie, origin, ...FORM } })).text;
    const controls = [...(await pageOf('alarms/new')).matchAll(control)].filter(isText).map(([, name]) => name!);
    const names = controls.filter((name) => name !== 'text');
    assert.ok(names.length > 20, String(names));
    const odd = 'a\u202eb\u200bc';
    const body = new URLSearchParams({ csrf, do: 'read' });
    for (const name of names) body.set(name, `${odd} ${name}`);
    const unmarked = (page: string) =>
      [...page.matchAll(control)].filter((match) => {
        const [tag] = match;
        return (
          isText(match) &&
          tag.includes('\u202e') &&
          !page.slice(match.index + tag.length).startsWith('<p class="hint bad">')
        );
      });
    const page = await pageOf('alarms/new', { method: 'POST', body: String(body) });
    const marks = page.split('a<span class="odd" title="invisible or misleading character">').length - 1;
    assert.ok(marks >= names.length, `${marks} marks for ${names.length} controls`);
    assert.deepEqual(
      unmarked(page).map(([, name]) => name),
      [],
    );
    const payload = JSON.stringify({ to: odd });
    const set = await installation.reveille(
      ...['alarm', 'set', `pay ${odd}`, 'in 5 hours', '--label', `label ${odd}`, '--payload', payload, '--json'],
    );
    for (const path of [`alarms/${JSON.parse(set).id}/edit`, `alarms/new?like=${JSON.parse(set).id}`]) {
      const form = await pageOf(path);
      assert.equal([...form.matchAll(control)].filter(([tag]) => tag.includes('\u202e')).length, 3, path);
      assert.deepEqual(
        unmarked(form).map(([, name]) => name),
        [],
        path,
      );
    }
  });

  test('foreign origins and writes without an origin: 0 of 120 are accepted', async (t) => {
    const count = await alarms();
    const port = new URL(origin).port;
    const origins = [
      'null',
      'http://evil.example',
      `https://127.0.0.1:${port}`,
      'http://127.0.0.1',
      'http://127.0.0.1:1',
      `http://localhost:${port}`,
      `http://127.0.0.1:${port}.evil.example`,
      `${origin}/`,
      '',
    ];
    let tried = 0;
    let accepted = 0;
    const record = ({ status }: Got) => {
      tried++;
      if (status < 400) accepted++;
    };
    for (const one of origins)
      for (const site of ['cross-site', 'same-site', 'same-origin', 'none'])
        for (const body of [undefined, `csrf=${csrf}&do=set&message=x&when=in+3+hours`, 'do=set'])
          record(
            await attempt({
              headers: { origin: one, 'sec-fetch-site': site },
              ...(body === undefined ? {} : { body }),
            }),
          );
    for (const site of ['cross-site', 'same-site', 'none'])
      for (const mode of ['no-cors', 'cors', 'navigate', 'websocket'])
        record(await attempt({ headers: { 'sec-fetch-site': site, 'sec-fetch-mode': mode } }));
    t.diagnostic(`${tried} tried, ${accepted} accepted`);
    assert.deepEqual([tried, accepted], [120, 0]);
    assert.equal(await alarms(), count);
  });

  test('forms without the CSRF token or with another content type: none is accepted', async (t) => {
    const count = await alarms();
    const other = /data-csrf="([^"]+)"/.exec(await secondSession())![1]!;
    const rest = 'do=set&message=stolen&when=in+2+hours';
    const tokens = [
      '',
      'csrf=',
      `csrf=${other}`,
      `csrf=${csrf.slice(0, -1)}`,
      `csrf=${csrf}x`,
      `csrf=${csrf.toUpperCase()}`,
      `csrf=${randomBytes(32).toString('base64url')}`,
    ];
    let accepted = 0;
    for (const token of tokens) if ((await attempt({ body: `${token}&${rest}` })).status < 400) accepted++;
    for (const type of ['application/json', 'text/plain', 'multipart/form-data; boundary=x'])
      if ((await attempt({ headers: { 'content-type': type } })).status < 400) accepted++;
    for (const path of ['undo', 'alarms/several', 'machine/suspend', 'approvals/answer', 'chat', 'sign-out']) {
      const got = await send(`${origin}${base}${path}`, {
        method: 'POST',
        headers: { cookie, origin, ...FORM },
        body: 'x=1',
      });
      if (got.status < 400) accepted++;
    }
    t.diagnostic(`${tokens.length + 9} tried, ${accepted} accepted`);
    assert.equal(accepted, 0);
    assert.equal(await alarms(), count);
  });

  async function secondSession(): Promise<string> {
    const opened = await send(await installation.address());
    const path = /Path=(\/~[^;]+)/.exec(opened.cookie!)![1]!;
    return (await send(`${origin}${path}upcoming`, { headers: { cookie: opened.cookie!.split(';')[0]! } })).text;
  }

  test('forged, shortened, exchanged and closed cookies: none opens a session', async (t) => {
    const [name, token] = cookie.split('=') as [string, string];
    let accepted = 0;
    const record = async (path: string, value: string) => {
      if ((await send(`${origin}${path}upcoming`, { headers: { cookie: value } })).status < 400) accepted++;
    };
    for (let n = 0; n < TRIES / 2 - 10; n++) await record(base, `${name}=${randomBytes(32).toString('base64url')}`);
    for (let n = 0; n < TRIES / 2 - 10; n++) await record(`/~${randomBytes(16).toString('base64url')}/`, cookie);
    for (const value of [
      '',
      name,
      `${name}=`,
      `${name}=${token.slice(1)}`,
      `${name}=${token}x`,
      `x=${token}`,
      `${name}="${token}"`,
      `${name}=${token.toLowerCase()}`,
      `${name}=undefined`,
      `${name}=${csrf}`,
    ])
      await record(base, value);
    const closing = await send(await installation.address());
    const closed = closing.cookie!.split(';')[0]!;
    const path = /Path=(\/~[^;]+)/.exec(closing.cookie!)![1]!;
    const page = await send(`${origin}${path}upcoming`, { headers: { cookie: closed } });
    const own = /data-csrf="([^"]+)"/.exec(page.text)![1]!;
    assert.equal(
      (
        await send(`${origin}${path}sign-out`, {
          method: 'POST',
          headers: { cookie: closed, origin, ...FORM },
          body: `csrf=${own}`,
        })
      ).status,
      303,
    );
    for (let n = 0; n < 10; n++) await record(path, closed);
    t.diagnostic(`${TRIES} tried, ${accepted} accepted`);
    assert.equal(accepted, 0);
  });

  test('forged, old, changed and used codes: none opens a session', async (t) => {
    let accepted = 0;
    let tried = 0;
    const record = async (code: string) => {
      tried++;
      const { status, cookie: given } = await send(`${origin}/open?code=${encodeURIComponent(code)}`);
      if (status < 400 || given !== undefined) accepted++;
    };
    const user = 'user';
    const secret = installation.run.console_secret!;
    for (let n = 0; n < 0.4 * TRIES; n++)
      await record(makeCode(randomBytes(32).toString('base64url'), user, Date.now()));
    for (let n = 0; n < 0.2 * TRIES; n++) await record(makeCode(secret, user, Date.now() - 700_000 - n * 1000));
    for (let n = 0; n < 0.1 * TRIES; n++) await record(makeCode(secret, user, Date.now() + 700_000 + n * 1000));
    const good = new URL(await installation.address()).pathname.slice('/o/'.length);
    // Each character of the code is changed in turn.
    for (let n = 0; n < 0.1 * TRIES; n++) {
      const at = n % good.length;
      const letter = String.fromCharCode(97 + (n % 26));
      const changed = `${good.slice(0, at)}${good[at] === letter ? '_' : letter}${good.slice(at + 1)}`;
      await record(changed);
    }
    const first = await send(`${origin}/open?code=${good}`);
    assert.equal(first.status, 200);
    while (tried < TRIES) await record(good);
    t.diagnostic(`${tried} tried, ${accepted} accepted`);
    assert.deepEqual([tried, accepted], [TRIES, 0]);
  });

  test('every answer has the content security policy, and no page has an inline script, style or handler', async () => {
    for (const path of ['upcoming', 'alarms', 'alarms/new', 'approvals', 'status', 'nothing']) {
      const { text, headers } = await send(`${origin}${base}${path}`, { headers: { cookie } });
      const policy = String(headers['content-security-policy']);
      assert.match(policy, /default-src 'none'; script-src 'self'; style-src 'self'/);
      assert.doesNotMatch(policy, /unsafe|\*|data:|http/);
      assert.equal(headers['cache-control'], 'no-store');
      assert.doesNotMatch(text, /<script(?![^>]*\ssrc="\/assets\/)|<style|\son\w+=|\sstyle=|javascript:/i);
    }
  });

  test('another server on this computer does not receive the cookie', async () => {
    const got: (string | undefined)[] = [];
    const other = await listening(
      owner,
      createServer((incoming, response) => {
        got.push(incoming.headers.cookie);
        response.setHeader('content-type', 'text/html').end('<p>a preview of my work</p>');
      }),
    );
    const { page, context } = await browser.open();
    await page.goto(await installation.address());
    await page.waitForURL(/\/upcoming$/);
    const path = new URL(page.url()).pathname;
    for (const target of [other, `${other}/alarms`, other.replace('127.0.0.1', 'localhost'), `${other}/~x/upcoming`])
      await page.goto(target);
    assert.deepEqual(
      got.filter((one) => one !== undefined),
      [],
    );
    // Its pages can neither read pages of the console nor write to them.
    const result = await page.evaluate(
      `Promise.all([
        fetch('${origin}${path}', { credentials: 'include' }).then((r) => r.text(), () => 'refused'),
        fetch('${origin}${path.replace('upcoming', 'alarms/new')}', { method: 'POST', mode: 'no-cors', credentials: 'include', headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: 'do=set&message=stolen&when=in+1+hour' }).then((r) => r.type, () => 'refused'),
        new Promise((resolve) => { const frame = document.createElement('iframe'); frame.src = '${origin}${path}'; frame.onload = () => { try { resolve(frame.contentDocument ? 'read ' + frame.contentDocument.title : 'closed'); } catch { resolve('closed'); } }; document.body.append(frame); }),
      ])`,
    );
    const [read, , framed] = result as string[];
    assert.deepEqual([read, framed], ['refused', 'closed']);
    assert.doesNotMatch(await installation.reveille('alarm', 'list', '--all'), /stolen.*stolen/s);
    await context.close();
  });

  test('script and markup in every field that an agent can write stay text', async (t) => {
    const evil = `<script>window.hit=1</script><img src=x onerror="window.hit=1"><svg/onload=window.hit=1>"'><a href="javascript:window.hit=1">x</a></textarea></title></pre>{{7*7}}\u202e\u200b`;
    const payload = JSON.stringify({ evil, '</pre><script>window.hit=1</script>': [evil] });
    await installation.reveille(
      'alarm',
      'set',
      evil,
      'in 4 hours',
      '--label',
      evil.slice(0, 180),
      '--payload',
      payload,
      '--as',
      evil.slice(0, 90),
    );
    await installation.reveille('alarm', 'set', evil, 'every day at 9:00', '--label', `series ${evil.slice(0, 150)}`);
    await installation.reveille('intent', 'submit', '--conversation', 'evil', evil).catch(() => undefined);
    const { page, context } = await browser.open();
    const broken: string[] = [];
    page.on('dialog', (dialog) => {
      broken.push(`dialog ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on('pageerror', (error) => broken.push(error.message));
    page.on('console', (message) => {
      if (/Content Security Policy/.test(message.text())) broken.push(message.text());
    });
    await page.goto(await installation.address());
    await page.waitForURL(/\/upcoming$/);
    const root = page.url().slice(0, -'upcoming'.length);
    const paths = [
      'upcoming',
      'alarms',
      `alarms?text=${encodeURIComponent(evil.slice(0, 100))}`,
      'approvals',
      'chat/evil',
      'machine',
      'status',
      `alarms/reading?when=${encodeURIComponent(evil.slice(0, 150))}`,
    ];
    await page.goto(`${root}alarms?sort=newest`);
    const links = await page.locator('a.name').evaluateAll((all) => all.map((one) => String(one.getAttribute('href'))));
    for (const link of links) paths.push(link, `${link.split('?')[0]}/edit`, `${link.split('?')[0]}/cancel`);
    for (const path of paths) {
      await page.goto(root + path);
      const planted = await page.evaluate(
        `[window.hit, document.querySelectorAll('script:not([src]), img, a[href^="javascript:"], [onload], [onerror]').length]`,
      );
      assert.deepEqual(planted, [undefined, 0], path);
    }
    await page.goto(root + links[0]);
    const message = await page.locator('.detail .quote').first().innerText();
    assert.match(message, /<script>window\.hit=1<\/script>/);
    assert.equal(await page.locator('.detail .quote .odd').count(), 2, 'invisible characters are marked');
    assert.deepEqual(broken, []);
    t.diagnostic(`${paths.length} pages with markup in label, message, payload, name and task; no script runs`);
    await context.close();
  });

  test('other paths and methods are refused', async () => {
    for (const path of [
      '~',
      '~x/alarms',
      '../admin/machines',
      '%2e%2e/admin',
      '~/../../etc/passwd',
      'assets/..%2fconsole.ts',
      'assets/console.ts',
      'open',
      'sign-in',
    ]) {
      const { status, text } = await send(`${origin}/${path}`);
      assert.ok(status >= 400, `${path}: ${status}`);
      assert.doesNotMatch(text, /root:|import /);
    }
    for (const method of ['PUT', 'DELETE', 'PATCH', 'OPTIONS'])
      assert.ok((await send(`${origin}${base}alarms`, { method, headers: { cookie, origin } })).status >= 400, method);
  });
});
