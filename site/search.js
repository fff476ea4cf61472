// Looks the words up in the index that was made with the site; nothing leaves the browser.
// Laid beside this file by site/build.ts.
import MiniSearch from './minisearch.js';

const MOST = 8;
const input = document.getElementById('search');
const list = document.getElementById('found');
let index;

async function load() {
  index ??= fetch('/search.json')
    .then((response) => response.text())
    .then((text) => MiniSearch.loadJSON(text, { fields: ['title', 'text'], storeFields: ['title', 'path'] }));
  return index;
}

input.addEventListener('input', async () => {
  const words = input.value.trim();
  const found = words === '' ? [] : (await load()).search(words, { prefix: true, fuzzy: 0.2, boost: { title: 3 } });
  list.replaceChildren(
    ...found.slice(0, MOST).map(({ title, path }) => {
      const item = document.createElement('li');
      const link = document.createElement('a');
      link.href = path === '' ? '/' : `/${path}/`;
      link.textContent = title;
      item.append(link);
      return item;
    }),
  );
  list.hidden = found.length === 0;
});
addEventListener('keydown', (event) => {
  if (event.key === '/' && document.activeElement !== input) {
    event.preventDefault();
    input.focus();
  }
  if (event.key === 'Escape') list.hidden = true;
});
