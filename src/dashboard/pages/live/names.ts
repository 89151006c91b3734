/** Verdicts in drawing order, with their colours. */
export const VERDICTS = [
  { verdict: 'human', label: 'People', colour: 'human' },
  { verdict: 'agent', label: 'Agents', colour: 'agent' },
  { verdict: 'automation', label: 'Automation', colour: 'automation' },
  { verdict: 'unknown', label: 'Unknown', colour: 'unknown' },
] as const

export function verdictOf(verdict: string): string {
  return VERDICTS.find((each) => each.verdict === verdict)?.label ?? verdict
}

/** Categories of agents in drawing order, with their colours. */
export const CATEGORIES = [
  { category: 'llm-sdk', label: 'LLM SDKs', colour: 'llm-sdk' },
  { category: 'browser-agent', label: 'Browser agents', colour: 'browser-agent' },
  { category: 'orchestrator', label: 'Orchestrators', colour: 'orchestrator' },
  { category: 'crawler', label: 'Crawlers', colour: 'crawler' },
  { category: 'mcp-client', label: 'MCP clients', colour: 'mcp-client' },
  { category: 'custom', label: 'Custom', colour: 'custom' },
  { category: 'unnamed', label: 'Unnamed', colour: 'unnamed' },
] as const

/** Published purposes of agents, in the order of the statistics. */
export const PURPOSES = [
  { purpose: 'search', label: 'Search' },
  { purpose: 'assistant', label: 'Assistant' },
  { purpose: 'agent', label: 'Agent' },
  { purpose: 'training', label: 'Training' },
  { purpose: 'archive', label: 'Archive' },
  { purpose: 'monitor', label: 'Monitor' },
  { purpose: 'preview', label: 'Preview' },
  { purpose: 'seo', label: 'SEO' },
  { purpose: 'security', label: 'Security' },
] as const

export function purposeOf(purpose: string): string {
  return PURPOSES.find((each) => each.purpose === purpose)?.label ?? purpose
}

/** Empty if nothing is published. */
export function purposesText(purposes: readonly string[]): string {
  return purposes.map(purposeOf).join(', ')
}

export function categoryOf(category: string): string {
  return CATEGORIES.find((each) => each.category === category)?.label ?? category
}
