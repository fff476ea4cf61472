// A scheduler that implements only the wire format of the sources: it posts its input and prints the answer.
import { request } from 'node:http';

const [url, token] = process.argv.slice(2);
const body = [];
process.stdin.on('data', (chunk) => body.push(chunk));
process.stdin.on('end', () => {
  const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` };
  const post = request(url, { method: 'POST', headers, timeout: 60_000 }, (answer) => {
    answer.setEncoding('utf8');
    let text = '';
    answer.on('data', (chunk) => {
      text += chunk;
    });
    answer.on('end', () => console.log(`${answer.statusCode} ${text}`));
  });
  post.end(Buffer.concat(body));
});
