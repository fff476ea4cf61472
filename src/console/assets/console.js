// Live updates and keyboard shortcuts. All else works without this file. It builds no markup from untrusted text: every
// fragment comes from the server, which has escaped it.

const body = document.body;
const main = () => document.getElementById('main');
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const PATH_KEPT = 'reveille-base';

// A session has a path of its own; the plain address leads there.
const base = new URL(document.baseURI).pathname;
if (base.startsWith('/~')) localStorage.setItem(PATH_KEPT, base);
else if (location.pathname === '/' && document.querySelector('[data-sign-in]')) {
  const kept = localStorage.getItem(PATH_KEPT);
  localStorage.removeItem(PATH_KEPT);
  if (kept && /^\/~[A-Za-z0-9_-]{22}\/$/.test(kept)) location.replace(`${kept}upcoming`);
}
if (body.dataset.leadsOn) location.replace(document.getElementById('onward').href);

// The zone of this browser is the default at sign-in.
const zoneField = document.querySelector('[data-zone]');
if (zoneField && zoneField.value === '') zoneField.value = Intl.DateTimeFormat().resolvedOptions().timeZone ?? '';

// Relative times stay current.
function fromNow(at, now) {
  const distance = Math.abs(at - now);
  if (distance < 1000) return 'now';
  const whole = Math.round(distance / 1000);
  const units = [
    [86400, 'd'],
    [3600, 'h'],
    [60, 'min'],
    [1, 's'],
  ];
  const first = units.findIndex(([size]) => whole >= size);
  const [size, name] = units[first];
  const big = Math.floor(whole / size);
  const next = units[first + 1];
  const rest = next ? Math.floor((whole - big * size) / next[0]) : 0;
  const text = rest > 0 && next ? `${big} ${name} ${rest} ${next[1]}` : `${big} ${name}`;
  return at > now ? `in ${text}` : `${text} ago`;
}
function tick() {
  const now = Date.now();
  for (const element of all('.rel[data-at]')) element.textContent = fromNow(Number(element.dataset.at), now);
}
setInterval(tick, 5000);

/** A question that appeared more recently is not answered: the user may have meant another one. */
const SEEN_MS = 700;
const seenQuestions = new Map();
const questions = () => all('[data-question]').map(({ dataset }) => dataset.question);
/** @param before the former questions: a question at a changed position counts as new, as do all when one is gone */
function noteQuestions(before = []) {
  const now = questions();
  const hasGone = before.some((question) => !now.includes(question));
  for (const [at, question] of now.entries())
    if (hasGone || before[at] !== question) seenQuestions.set(question, performance.now());
}

let refreshing;
let refreshAgain = false;
/** The form for which the browser asks the user for a passkey or a permission. */
let asking;
/** Keeps updates away from a form while the browser asks. A second press has no effect meanwhile. */
async function undisturbed(form, ask) {
  if (asking) return;
  asking = form;
  try {
    await ask();
  } finally {
    asking = undefined;
    applyDue();
  }
}

// Live updates. A page without hints (`data-looks-at`) is never fetched again: forms and their answers, which have no
// address of their own.
async function refresh() {
  if (!main().dataset.looksAt) return;
  if (refreshing) {
    refreshAgain = true;
    return;
  }
  refreshing = true;
  refreshAgain = false;
  try {
    const answer = await fetch(location.href, { headers: { 'x-reveille-part': 'main' }, credentials: 'same-origin' });
    if (answer.status === 401) return location.reload();
    // The content was deleted: the page keeps its last state.
    if (answer.status === 404) return;
    if (!(answer.headers.get('content-type') ?? '').startsWith('text/html')) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html').getElementById('main');
    if (fresh) update(fresh);
  } catch {
    // The stream reports the lost connection, and refreshes the page when it is back.
  } finally {
    refreshing = false;
    if (refreshAgain) setTimeout(refresh, 400);
  }
}

/** Forms that an update skipped because they were in use. */
const due = new Set();
function applyDue() {
  if ([...due].some((form) => !isInUse(form))) refresh();
}
// `activeElement` names the next element only after the event.
document.addEventListener('focusout', () => setTimeout(applyDue));

function isChanged({ tagName, type, checked, defaultChecked, value, defaultValue, options, selectedIndex }) {
  if (tagName === 'SELECT')
    return (
      selectedIndex !==
      Math.max(
        0,
        [...options].findIndex((one) => one.defaultSelected),
      )
    );
  if (type === 'checkbox' || type === 'radio') return checked !== defaultChecked;
  return (tagName === 'INPUT' || tagName === 'TEXTAREA') && type !== 'hidden' && value !== defaultValue;
}

/** Whether a form has the focus, or a control of it has another value than the server gave it. */
function isInUse(form) {
  if (!form.isConnected) return false;
  const active = document.activeElement;
  return form === asking || form.contains(active) || active?.form === form || [...form.elements].some(isChanged);
}

/** Whether an update may go into a node; it never goes into a form in use. */
function mayUpdate(old, fresh) {
  if (!(old instanceof Element)) return true;
  const form = old instanceof HTMLFormElement ? old : old.form;
  if (form && isInUse(form)) {
    due.add(form);
    return false;
  }
  // This script fills these two.
  if (old.matches('.tools, [data-error]')) return false;
  // A streamed reply is ahead of the page.
  if (old.matches('[data-reply]') && old.closest('[data-turn]').querySelector('.state.running'))
    return fresh.textContent.length >= old.textContent.length;
  return true;
}
function mayRemove(node) {
  if (!(node instanceof Element)) return true;
  const inUse = [...(node instanceof HTMLFormElement ? [node] : []), ...all('form', node)].filter(isInUse);
  for (const form of inUse) due.add(form);
  return inUse.length === 0;
}
/** Open details and the selected row belong to the user. */
const mayChange = (attribute, { tagName }) =>
  !(attribute === 'data-selected' || (attribute === 'open' && tagName === 'DETAILS'));

/** Applies the differences of a new page. Elements stay, with focus, selection and scroll position. */
function update(fresh) {
  const before = questions();
  due.clear();
  Idiomorph.morph(main(), fresh, {
    morphStyle: 'outerHTML',
    callbacks: { beforeNodeMorphed: mayUpdate, beforeNodeRemoved: mayRemove, beforeAttributeUpdated: mayChange },
  });
  noteQuestions(before);
  tick();
}

// Server-sent events while the page is visible. A page in the background lets the agent's machine stop.
let stream;
let later;
function show(state, text) {
  const light = document.querySelector('.live');
  if (!light) return;
  light.dataset.state = state;
  light.setAttribute('aria-label', text);
}
function follow() {
  if (stream || !base.startsWith('/~')) return;
  const { conversation, seen = '' } = document.querySelector('[data-conversation]')?.dataset ?? {};
  stream = new EventSource(`${base}live${conversation ? `?${new URLSearchParams({ conversation, seen })}` : ''}`);
  stream.addEventListener('hello', () => {
    show('on', 'live updates on');
    // The page may miss events from before its stream.
    refresh();
  });
  stream.addEventListener('error', () => show('lost', 'connection lost, trying again'));
  stream.addEventListener('hint', ({ data }) => {
    if ((main().dataset.looksAt ?? '').split(' ').includes(data)) refresh();
    if (data === 'approvals') count();
  });
  const turnOf = ({ turn }) => main().querySelector(`[data-turn="${CSS.escape(turn ?? '')}"]`);
  const on = (name, act) => stream.addEventListener(name, ({ data }) => act(JSON.parse(data)));
  on('say', (event) => {
    const reply = turnOf(event)?.querySelector('[data-reply]');
    if (!reply) return refresh();
    reply.innerHTML = event.html;
  });
  on('tool', (event) => {
    const box = turnOf(event)?.querySelector('.tools');
    if (!box) return;
    const list = box.querySelector('[data-tools]');
    const known = list.querySelector(`[data-call="${CSS.escape(event.call)}"]`);
    const item = known ?? list.appendChild(document.createElement('li'));
    item.dataset.call = event.call;
    item.innerHTML = event.html;
    box.hidden = false;
    const count = list.children.length === 1 ? '1 tool call' : `${list.children.length} tool calls`;
    box.firstElementChild.textContent = event.state === 'begun' ? `${count}: ${event.name} is running` : count;
  });
  on('status', (event) => {
    const state = turnOf(event)?.querySelector('[data-state]');
    if (state) state.innerHTML = event.html;
  });
  on('notice', ({ html }) => {
    const place = main().querySelector('.scroll > div') ?? main();
    const line = place.querySelector('[data-notice]') ?? place.appendChild(document.createElement('p'));
    line.dataset.notice = 'yes';
    line.className = 'trouble';
    line.innerHTML = html;
  });
}
function leave() {
  stream?.close();
  stream = undefined;
  show('off', 'no live updates');
}
document.addEventListener('visibilitychange', () => {
  clearTimeout(later);
  if (document.hidden) later = setTimeout(leave, 60000);
  else if (!stream) {
    follow();
    refresh();
  }
});
addEventListener('pagehide', leave);

/** The number of waiting questions, in the navigation. */
async function count() {
  const mark = document.querySelector('nav [data-waiting]');
  const answer = await fetch(`${base}approvals/waiting`, { credentials: 'same-origin' }).catch(() => undefined);
  if (mark && answer?.ok) mark.innerHTML = (await answer.json()).html;
}

// Shows how a time is read while it is typed.
let reading;
document.addEventListener('input', ({ target }) => {
  const form = target.closest('[data-reads]');
  if (!form || !['when', 'zone', 'holidays'].includes(target.name)) return;
  clearTimeout(reading);
  reading = setTimeout(async () => {
    const { when, zone, holidays } = form.elements;
    const query = new URLSearchParams({ when: when.value, zone: zone.value, holidays: holidays.value });
    const answer = await fetch(`${base}${form.dataset.reads}?${query}`, { headers: { 'x-reveille-part': 'main' } });
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    document.getElementById('reading').innerHTML = page.getElementById('main')?.innerHTML ?? '';
  }, 200);
});
document.addEventListener('change', ({ target }) => {
  if (target.tagName === 'SELECT') target.closest('[data-filters]')?.requestSubmit();
});
document.addEventListener('click', ({ target }) => {
  const filled = target.closest('[data-fill]');
  if (filled) {
    const field = document.getElementById(filled.dataset.fill);
    field.value = filled.textContent;
    field.focus();
    field.dispatchEvent(new Event('input', { bubbles: true }));
  }
  if (target.closest('[data-opens]')) document.getElementById('keys').showModal();
});

// Passkeys: the server sends the challenge, the browser asks the user, and the form sends the signature.
const hexOf = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, '0')).join('');
const bytesOf = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (two) => Number.parseInt(two, 16));
const textOf = (buffer) => new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(buffer);
const keyOf = (hex) => ({ type: 'public-key', id: bytesOf(hex) });
const TIMEOUT = 120000;

async function signedBy({ challenge, rp_id, ids }) {
  const publicKey = { challenge: bytesOf(challenge), rpId: rp_id, allowCredentials: ids.map(keyOf) };
  const { rawId, response } = await navigator.credentials.get({
    publicKey: { ...publicKey, userVerification: 'required', timeout: TIMEOUT },
  });
  return {
    credential_id: hexOf(rawId),
    authenticator_data: hexOf(response.authenticatorData),
    client_data: textOf(response.clientDataJSON),
    signature: hexOf(response.signature),
  };
}
async function madeBy({ challenge, rp_id, user_id, user, name, ids }) {
  const publicKey = {
    challenge: bytesOf(challenge),
    rp: { id: rp_id, name: 'Reveille' },
    user: { id: bytesOf(user_id), name: `${user}, ${name}`, displayName: user },
    // ES256, EdDSA, RS256.
    pubKeyCredParams: [-7, -8, -257].map((alg) => ({ type: 'public-key', alg })),
    excludeCredentials: ids.map(keyOf),
    authenticatorSelection: { residentKey: 'preferred', userVerification: 'required' },
    attestation: 'none',
    timeout: TIMEOUT,
  };
  const { rawId, response } = await navigator.credentials.create({ publicKey });
  const key = response.getPublicKey();
  if (!key) throw new DOMException('', 'NotSupportedError');
  return {
    credential_id: hexOf(rawId),
    public_key: hexOf(key),
    authenticator_data: hexOf(response.getAuthenticatorData()),
    client_data: textOf(response.clientDataJSON),
  };
}
const WHY_NOT = {
  NotAllowedError:
    'No passkey was used: the request was cancelled, timed out, or no passkey is available. Nothing changed.',
  AbortError: 'No passkey was used: the request was cancelled. Nothing changed.',
  InvalidStateError: 'This device already has a passkey for this address.',
  NotSupportedError: 'This device does not support the required type of passkey.',
  SecurityError: 'Your browser does not permit passkeys at this address.',
  TypeError: 'The console did not answer. Nothing changed; try again.',
};
function showError(part, text) {
  const line = part.querySelector('[data-error]');
  if (line) [line.textContent, line.hidden] = [text, text === ''];
}
async function withPasskey(form, button) {
  const report = (text) => showError(form, text);
  const add = (name, value) =>
    form.append(Object.assign(document.createElement('input'), { type: 'hidden', name, value }));
  report('');
  try {
    const fields = new URLSearchParams(new FormData(form, button));
    const answer = await fetch(new URL(form.dataset.passkey, document.baseURI), { method: 'POST', body: fields });
    if (answer.status === 401) return location.reload();
    const isJson = (answer.headers.get('content-type') ?? '').startsWith('application/json');
    const { get, create, fields: more, complaint } = isJson ? await answer.json() : { complaint: WHY_NOT.TypeError };
    if (complaint) return report(complaint);
    const given = get ? await signedBy(get) : await madeBy(create);
    for (const [name, value] of Object.entries({ ...more, ...given })) add(name, value);
    if (button?.name) add(button.name, button.value);
    form.submit();
  } catch (error) {
    report(WHY_NOT[error.name] ?? `Error: ${error.message}`);
    button?.focus();
  }
}
document.addEventListener('submit', (event) => {
  const { target: form, submitter } = event;
  const question = form.closest('[data-question]');
  if (question && performance.now() - seenQuestions.get(question.dataset.question) < SEEN_MS) {
    event.preventDefault();
    return showError(form, 'This question has just appeared. Read it, then answer.');
  }
  const canAsk = isSecureContext && 'PublicKeyCredential' in globalThis;
  if (!form.dataset.passkey || form.elements.by?.checked || !canAsk) return;
  event.preventDefault();
  undisturbed(form, () => withPasskey(form, submitter));
});

// Keyboard shortcuts.
const rows = () => all('[data-row]', main());
function select(row) {
  if (!row) return;
  for (const other of all('[data-selected]')) delete other.dataset.selected;
  row.dataset.selected = 'yes';
  (row.querySelector('[data-open]') ?? row).focus({ preventScroll: true });
  row.scrollIntoView({ block: 'nearest' });
}
function move(by) {
  const list = rows();
  const at = list.findIndex((row) => row.dataset.selected || row.contains(document.activeElement));
  select(list[at < 0 ? (by > 0 ? 0 : list.length - 1) : Math.max(0, Math.min(list.length - 1, at + by))]);
}
/** Answers the selected question, or the only one. */
function answer(key) {
  const asked = all('[data-question]');
  const selected = asked.find((one) => one.dataset.selected || one.contains(document.activeElement));
  const question = selected ?? (asked.length === 1 ? asked[0] : undefined);
  const button = question?.querySelector(`[data-answer="${key}"]`);
  button?.form.requestSubmit(button);
}
let going;
document.addEventListener('keydown', (event) => {
  const { key, target } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) && target.type !== 'checkbox';
  if (key === 'Escape' && isTyping) return target.blur();
  if (isTyping && target.closest('[data-say]') && key === 'Enter' && !event.shiftKey && target.tagName === 'TEXTAREA') {
    event.preventDefault();
    return target.form.requestSubmit();
  }
  if (isTyping || document.querySelector('dialog[open]')) return;
  if (going) {
    going = undefined;
    const link = document.querySelector(`[data-go="${CSS.escape(key)}"]`);
    if (link) link.click();
    return;
  }
  const act = {
    g: () => {
      going = true;
      setTimeout(() => {
        going = undefined;
      }, 1500);
    },
    '?': () => document.getElementById('keys')?.showModal(),
    j: () => move(1),
    k: () => move(-1),
    x: () => {
      const box = document.querySelector('[data-selected] input[type=checkbox]');
      if (box) box.checked = !box.checked;
    },
    y: () => answer('y'),
    d: () => answer('d'),
  }[key];
  const marked = document.querySelector(`[data-key="${CSS.escape(key)}"]`);
  if (act) {
    event.preventDefault();
    act();
  } else if (marked) {
    event.preventDefault();
    if (/^(INPUT|TEXTAREA)$/.test(marked.tagName)) marked.focus();
    else marked.click();
  }
});

for (const opener of all('[data-opens]')) opener.hidden = false;
noteQuestions();
follow();
