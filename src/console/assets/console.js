// Live updates and keys. Everything else works without this file; nothing here makes markup of what others wrote: what is
// put into a page comes whole from the server, which has made text of it.

const body = document.body;
const main = () => document.getElementById('main');
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const PATH_KEPT = 'reveille-base';

// A session lives below a path of its own; the plain address leads there.
const base = new URL(document.baseURI).pathname;
if (base.startsWith('/~')) localStorage.setItem(PATH_KEPT, base);
else if (location.pathname === '/' && document.querySelector('[data-way-in]')) {
  const kept = localStorage.getItem(PATH_KEPT);
  localStorage.removeItem(PATH_KEPT);
  if (kept && /^\/~[A-Za-z0-9_-]{22}\/$/.test(kept)) location.replace(`${kept}ahead`);
}
if (body.dataset.leadsOn) location.replace(document.getElementById('onward').href);

// Whoever signs in is in the zone of this browser, unless they say another.
const zoneField = document.querySelector('[data-zone]');
if (zoneField && zoneField.value === '') zoneField.value = Intl.DateTimeFormat().resolvedOptions().timeZone ?? '';

// Times that say how far off they are go on saying it.
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
  const words = rest > 0 && next ? `${big} ${name} ${rest} ${next[1]}` : `${big} ${name}`;
  return at > now ? `in ${words}` : `${words} ago`;
}
function tick() {
  const now = Date.now();
  for (const element of all('.rel[data-at]')) element.textContent = fromNow(Number(element.dataset.at), now);
}
setInterval(tick, 5000);

/** How long a question has to stand before somebody can have meant it with a key or a click. */
const SEEN_MS = 700;
const seenQuestions = new Map();
const questions = () => all('[data-question]').map(({ dataset }) => dataset.question);
/** @param before the questions that stood here: one that took the place of another counts as new, as do all when one went */
function noteQuestions(before = []) {
  const now = questions();
  const hasGone = before.some((question) => !now.includes(question));
  for (const [at, question] of now.entries())
    if (hasGone || before[at] !== question) seenQuestions.set(question, performance.now());
}

let looking;
let lookAgain = false;
/** The form for which the browser asks the user for a passkey or a permission. */
let asking;
/** Keeps live updates away from a form while the browser asks; a second press meanwhile does nothing. */
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

// Live updates. A page without hints (`data-looks-at`) is never fetched again: a form, and every answer to a form, which
// has no address of its own.
async function look() {
  if (!main().dataset.looksAt) return;
  if (looking) {
    lookAgain = true;
    return;
  }
  looking = true;
  lookAgain = false;
  try {
    const answer = await fetch(location.href, { headers: { 'x-reveille-part': 'main' }, credentials: 'same-origin' });
    if (answer.status === 401) return location.reload();
    // What the page shows was deleted: its last state stays.
    if (answer.status === 404) return;
    if (!(answer.headers.get('content-type') ?? '').startsWith('text/html')) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html').getElementById('main');
    if (fresh) update(fresh);
  } catch {
    // The stream reports that the connection is lost, and its return starts the next look.
  } finally {
    looking = false;
    if (lookAgain) setTimeout(look, 400);
  }
}

/** Forms that an update skipped because they were in use. */
const due = new Set();
function applyDue() {
  if ([...due].some((form) => !isInUse(form))) look();
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
  if (old.matches('[data-tools], [data-said]')) return false;
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
/** The user opens and closes details and moves through rows; the server knows of neither. */
const mayChange = (attribute, { tagName }) =>
  !(attribute === 'data-at-hand' || (attribute === 'open' && tagName === 'DETAILS'));

/** Changes the page where the fresh one differs. Elements stay, and with them focus, selection and scroll position. */
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

// Server-sent events, as long as somebody looks: a page in the background lets the agent's machine sleep.
let stream;
let later;
function show(state, words) {
  const light = document.querySelector('.live');
  if (!light) return;
  light.dataset.state = state;
  light.setAttribute('aria-label', words);
}
function follow() {
  if (stream || !base.startsWith('/~')) return;
  const { talk, seen = '' } = document.querySelector('[data-talk]')?.dataset ?? {};
  stream = new EventSource(`${base}live${talk ? `?${new URLSearchParams({ talk, seen })}` : ''}`);
  stream.addEventListener('hello', () => {
    show('on', 'live');
    // What came between the page and its stream was told to nobody here.
    look();
  });
  stream.addEventListener('error', () => show('lost', 'no connection; it is tried again'));
  stream.addEventListener('hint', ({ data }) => {
    if ((main().dataset.looksAt ?? '').split(' ').includes(data)) look();
    if (data === 'approvals') count();
  });
  const turnOf = ({ turn }) => main().querySelector(`[data-turn="${CSS.escape(turn ?? '')}"]`);
  const told = (name, act) => stream.addEventListener(name, ({ data }) => act(JSON.parse(data)));
  told('say', (said) => {
    const reply = turnOf(said)?.querySelector('[data-reply]');
    if (!reply) return look();
    reply.innerHTML = said.html;
    keepInSight(reply);
  });
  told('tool', (said) => {
    const list = turnOf(said)?.querySelector('[data-tools]');
    if (!list) return;
    const known = list.querySelector(`[data-call="${CSS.escape(said.call)}"]`);
    const item = known ?? list.appendChild(document.createElement('li'));
    item.dataset.call = said.call;
    item.innerHTML = said.html;
  });
  told('status', (said) => {
    const state = turnOf(said)?.querySelector('[data-state]');
    if (state) state.innerHTML = said.html;
  });
  told('notice', ({ html }) => {
    const line = main().querySelector('[data-notice]') ?? main().appendChild(document.createElement('p'));
    line.dataset.notice = 'yes';
    line.className = 'trouble';
    line.innerHTML = html;
  });
}
function keepInSight(element) {
  const { bottom } = element.getBoundingClientRect();
  if (bottom > innerHeight && bottom < innerHeight + 200) scrollBy(0, bottom - innerHeight + 40);
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
    look();
  }
});
addEventListener('pagehide', leave);

/** How many questions wait, in the navigation. */
async function count() {
  const mark = document.querySelector('nav [data-waiting]');
  const answer = await fetch(`${base}approvals/waiting`, { credentials: 'same-origin' }).catch(() => undefined);
  if (mark && answer?.ok) mark.innerHTML = (await answer.json()).html;
}

// A time is read back while it is typed.
let reading;
document.addEventListener('input', ({ target }) => {
  const form = target.closest('[data-reads]');
  if (!form || !['when', 'zone'].includes(target.name)) return;
  clearTimeout(reading);
  reading = setTimeout(async () => {
    const query = new URLSearchParams({ when: form.elements.when.value, zone: form.elements.zone.value });
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

// Passkeys: what is to be signed comes from the server, the browser asks the person, and the form takes the answer along.
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
    'No passkey was used: that was cancelled, took too long, or none of yours is here. Nothing was done.',
  AbortError: 'No passkey was used: that was cancelled. Nothing was done.',
  InvalidStateError: 'There is a passkey for this address in that device already.',
  NotSupportedError: 'That device makes no passkey of a sort that is taken here.',
  SecurityError: 'Your browser allows no passkeys at this address.',
  TypeError: 'The console could not be asked. Nothing was done; try it again.',
};
function tellIn(part, words) {
  const line = part.querySelector('[data-said]');
  if (line) [line.textContent, line.hidden] = [words, words === ''];
}
async function withPasskey(form, button) {
  const tell = (words) => tellIn(form, words);
  const add = (name, value) =>
    form.append(Object.assign(document.createElement('input'), { type: 'hidden', name, value }));
  tell('');
  try {
    const fields = new URLSearchParams(new FormData(form, button));
    const answer = await fetch(new URL(form.dataset.passkey, document.baseURI), { method: 'POST', body: fields });
    if (answer.status === 401) return location.reload();
    const isTold = (answer.headers.get('content-type') ?? '').startsWith('application/json');
    const { get, create, fields: more, complaint } = isTold ? await answer.json() : { complaint: WHY_NOT.TypeError };
    if (complaint) return tell(complaint);
    const given = get ? await signedBy(get) : await madeBy(create);
    for (const [name, value] of Object.entries({ ...more, ...given })) add(name, value);
    if (button?.name) add(button.name, button.value);
    form.submit();
  } catch (error) {
    tell(WHY_NOT[error.name] ?? `That did not work: ${error.message}`);
    button?.focus();
  }
}
document.addEventListener('submit', (event) => {
  const { target: form, submitter } = event;
  const question = form.closest('[data-question]');
  if (question && performance.now() - seenQuestions.get(question.dataset.question) < SEEN_MS) {
    event.preventDefault();
    return tellIn(form, 'This question has only just come to this place. Read it, and answer then.');
  }
  const canAsk = isSecureContext && 'PublicKeyCredential' in globalThis;
  if (!form.dataset.passkey || form.elements.by?.checked || !canAsk) return;
  event.preventDefault();
  undisturbed(form, () => withPasskey(form, submitter));
});

// Keys.
const rows = () => all('[data-row]', main());
function takeToHand(row) {
  if (!row) return;
  for (const other of all('[data-at-hand]')) delete other.dataset.atHand;
  row.dataset.atHand = 'yes';
  (row.querySelector('[data-open]') ?? row).focus({ preventScroll: true });
  row.scrollIntoView({ block: 'nearest' });
}
function move(by) {
  const list = rows();
  const at = list.findIndex((row) => row.dataset.atHand || row.contains(document.activeElement));
  takeToHand(list[at < 0 ? (by > 0 ? 0 : list.length - 1) : Math.max(0, Math.min(list.length - 1, at + by))]);
}
/** Answers the one question that a key can mean. */
function answer(key) {
  const asked = all('[data-question]');
  const atHand = asked.find((one) => one.dataset.atHand || one.contains(document.activeElement));
  const question = atHand ?? (asked.length === 1 ? asked[0] : undefined);
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
      const box = document.querySelector('[data-at-hand] input[type=checkbox]');
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
