// Searches the index that is built with the site. No request leaves the site.
// site/build.ts copies the library beside this file.
import MiniSearch from './minisearch.js';

const RESULTS_MAX = 8;
const input = document.getElementById('search');
const list = document.getElementById('found');
let index;

async function load() {
  index ??= fetch('/search.json')
    .then((response) => response.text())
    .then((text) => MiniSearch.loadJSON(text, { fields: ['title', 'text'], storeFields: ['title', 'url'] }));
  return index;
}

input.addEventListener('input', async () => {
  const query = input.value.trim();
  const found = query === '' ? [] : (await load()).search(query, { prefix: true, fuzzy: 0.2, boost: { title: 3 } });
  list.replaceChildren(
    ...found.slice(0, RESULTS_MAX).map(({ title, url }) => {
      const item = document.createElement('li');
      const link = document.createElement('a');
      link.href = url;
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
