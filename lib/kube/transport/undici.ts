import request from 'undici/lib/api/api-request.js';
import Agent from 'undici/lib/dispatcher/agent.js';
import Dispatcher from 'undici/lib/dispatcher/dispatcher.js';
import ProxyAgent from 'undici/lib/dispatcher/proxy-agent.js';

/* The parts of undici that a client of an API server needs. Its index also loads fetch, caches, mocks and cookies. */

Dispatcher.prototype.request = request;

export { Agent, ProxyAgent };
