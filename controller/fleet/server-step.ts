import { discoverEndpoint, endpointText } from '../endpoint/discovery.ts';
import { failed, type Step, succeeded } from './steps.ts';

/** Finds where agents dial. */
export const serverStep: Step = {
  condition: 'ServerDiscovered',
  purpose: 'discover the server',
  run: (context) => {
    const { server } = context.spec;
    if (server.problem !== undefined) {
      return failed(`Server discovery failed: ${server.problem}`, 'ServerNotDiscovered');
    }
    const found = discoverEndpoint(server.value, context.surroundings, context.namespace);
    if ('problem' in found) {
      return failed(found.problem, 'ServerNotDiscovered');
    }
    context.endpoint = found;
    return succeeded(`Server at ${endpointText(found)}`);
  },
};
