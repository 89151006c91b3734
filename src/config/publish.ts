import { type ValueOf, section, setting } from './items.ts'
import { boolean, optional, targetPath } from './kinds.ts'

export const PUBLISH = section(
  'The policy in forms that crawlers read, answered by the proxy; config/guide/terms.md describes them.',
  {
    robots: setting(
      boolean,
      false,
      "Whether the proxy answers `/robots.txt`, with what the policy allows to each crawler and the app's own rules. The policy then never refuses `/robots.txt`.",
    ),
    content_usage: setting(
      boolean,
      false,
      'Whether answers of the app get the header `Content-Usage` if they have none, and robots.txt its rules (AIPREF). Nothing is stated if the policy treats all uses alike.',
    ),
    content_signal: setting(boolean, false, 'Whether robots.txt gets `Content-Signal` rules.'),
    rsl_path: setting(
      optional(targetPath),
      null,
      'The path at which the proxy answers with the licence as an RSL 1.0 document, like `/license.xml`. robots.txt names it. `null`: none.',
    ),
  },
)

export interface PublishConfig {
  readonly hasRobots: boolean
  readonly hasUsage: boolean
  readonly hasSignals: boolean
  readonly rslPath: string | null
}

export function publishConfig(publish: ValueOf<typeof PUBLISH>): PublishConfig {
  return {
    hasRobots: publish.robots,
    hasUsage: publish.content_usage,
    hasSignals: publish.content_signal,
    rslPath: publish.rsl_path,
  }
}
