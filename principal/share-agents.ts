import type { ClusterInfos } from './clusters/cluster-info.ts';
import type { MappedAgents } from './clusters/mapped-agents.ts';
import type { HubSynchronisation } from './hub-sync.ts';
import type { Replicas } from './replicas/index.ts';
import type { AgentRecords } from './sessions/agent-records.ts';
import type { Sessions } from './sessions/sessions.ts';

/**
 * Connects the engine with the other principals: an agent that this one holds is served, one that another one holds is left to it,
 * and what is to be done for an agent that nobody holds is done by the leader.
 */
export function shareAgents(options: {
  readonly replicas: Replicas;
  readonly sessions: Pick<Sessions, 'held' | 'lost'>;
  readonly hub: HubSynchronisation;
  readonly agents: Pick<MappedAgents, 'has' | 'names'>;
  readonly records: Pick<AgentRecords, 'modeOf' | 'forgetAllBut'>;
  readonly clusterInfos: ClusterInfos;
  /** Protects the mirrors of an autonomous agent that is not connected. */
  readonly protectMirrors: (agent: string) => void;
}): void {
  const { replicas, sessions, hub, agents, records, clusterInfos, protectMirrors } = options;
  /** Agents that another replica serves, as the engine was told. */
  const elsewhere = new Set<string>();
  const takeCare = (agent: string) => {
    if (agents.has(agent)) {
      protectMirrors(agent);
    }
    hub.responsibleFor(agent);
  };
  const changed = (agent: string) => {
    const holder = replicas.directory.holderOf(agent);
    const isManaged = records.modeOf(agent) === 'managed';
    if (holder !== 'here') {
      // What this one did for the agent as leader ends, or begins again with what its caches have now.
      hub.sync.releaseAgent(agent);
    }
    if (typeof holder === 'object') {
      if (!elsewhere.has(agent)) {
        elsewhere.add(agent);
        hub.servedElsewhere(agent, true, isManaged);
        clusterInfos.servedElsewhere(agent);
      }
      return;
    }
    if (elsewhere.delete(agent) && holder === undefined) {
      hub.servedElsewhere(agent, false, isManaged);
      if (agents.has(agent)) {
        clusterInfos.disconnected(agent);
      }
    }
    if (holder === undefined && replicas.isResponsible(agent)) {
      takeCare(agent);
    }
  };
  replicas.follow({
    held: (agent) => {
      if (elsewhere.delete(agent)) {
        hub.servedElsewhere(agent, false, records.modeOf(agent) === 'managed');
      }
      // What this one did for the agent as leader began with what its caches had then.
      hub.sync.releaseAgent(agent);
      sessions.held(agent);
      // What was written on its Applications while nobody served it was nobody's to correct.
      hub.responsibleFor(agent);
    },
    lost: (agent, why) => sessions.lost(agent, why),
    released: (agent) => hub.sync.releaseAgent(agent),
    changed,
    leadershipChanged: (isLeader) => {
      for (const agent of agents.names()) {
        if (isLeader && replicas.isResponsible(agent)) {
          protectMirrors(agent);
        } else if (replicas.directory.holderOf(agent) !== 'here') {
          hub.sync.releaseAgent(agent);
        }
      }
      if (!isLeader) {
        return;
      }
      records.forgetAllBut((agent) => agents.has(agent));
      hub.responsibleFor(undefined);
    },
  });
  for (const agent of agents.names()) {
    changed(agent);
  }
}
