/* A web server for pods of tests and demonstrations. Plain JavaScript, as bind-address.mjs is. */
import { createServer } from 'node:http';
import { hostname } from 'node:os';

const port = Number(process.env.PORT ?? 8080);
const server = createServer((request, response) => {
  response.end(`${request.method} ${request.url} on ${hostname()}\n`);
});
server.listen(port, () => console.log(`listening on ${port}`));
process.once('SIGTERM', () => {
  server.close(() => process.exit(0));
  server.closeAllConnections();
});
