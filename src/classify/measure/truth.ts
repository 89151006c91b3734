import type { Class } from '../known/weights.ts'

/** The class that counts as right for a label; `null` for unknown labels. */
export function truthOf(label: string): Class | null {
  return TRUTHS.get(label) ?? null
}

/**
 * A program that poses as a person's browser acts on its own, whatever library it uses, so it counts as an
 * agent.
 */
const TRUTHS: ReadonlyMap<string, Class> = new Map<string, Class>([
  ['human-browser', 'human'],
  ['http-library', 'automation'],
  ...([
    'browser-agent',
    'llm-sdk',
    'orchestrator',
    'mcp-client',
    'crawler',
    'spoofed-browser',
    'synthetic-ua',
  ].map((label) => [label, 'agent']) as [string, Class][]),
])
