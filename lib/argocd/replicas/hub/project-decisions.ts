import type { AppProject } from '../../application.ts';

/** Which agents get which AppProjects. Applications ask for each change of their status, and repositories for each Secret. */
export class ProjectDecisions {
  readonly #decide: (project: AppProject, agent: string) => boolean;
  readonly #known = new Map<string, WeakMap<AppProject, boolean>>();

  /** @param decide depends on the project, what surrounds it, the agent and its clusters alone */
  constructor(decide: (project: AppProject, agent: string) => boolean) {
    this.#decide = decide;
  }

  /** @param agent one of the fleet: what is decided is kept until it is forgotten */
  of(project: AppProject, agent: string): boolean {
    let projects = this.#known.get(agent);
    if (projects === undefined) {
      projects = new WeakMap();
      this.#known.set(agent, projects);
    }
    let decision = projects.get(project);
    if (decision === undefined) {
      decision = this.#decide(project, agent);
      projects.set(project, decision);
    }
    return decision;
  }

  /** The clusters of an agent, or for all agents what surrounds the projects, have changed. */
  forget(agent?: string): void {
    if (agent === undefined) {
      this.#known.clear();
    } else {
      this.#known.delete(agent);
    }
  }
}
