export { type AgentContext, type AgentInput, agentContextOf, isOriginalImage } from './agent-context.ts';
export { type Flavour, Templates } from './templates.ts';
