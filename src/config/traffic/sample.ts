import { optional, share } from '../kinds.ts'
import { section, sections, setting, type ValueOf } from '../items.ts'
import { appInFilter } from '../apps.ts'
import type { Say } from '../inject.ts'

const OF_APP = section('', {
  app: setting(appInFilter, undefined, 'The id of the app. `default`: requests that matched no app.'),
  default: setting(
    optional(share),
    null,
    'Of its requests whose verdict has no share here. `null`: as for all apps.',
    inPart,
  ),
  agent: setting(optional(share), null, 'Of requests of agents. `null`: as `default` here.', inAgentPart),
  automation: setting(
    optional(share),
    null,
    'Of requests of other programs. `null`: as `default` here.',
    inPart,
  ),
  human: setting(optional(share), null, 'Of requests of people. `null`: as `default` here.', inPart),
  unknown: setting(
    optional(share),
    null,
    'Of requests without a verdict. `null`: as `default` here.',
    inPart,
  ),
  blocked: setting(
    optional(share),
    null,
    'Of requests that a rule refuses, limits or delays. `null`: as for all apps.',
    inBlockedPart,
  ),
})

/** `sightings.sample`. */
export const SAMPLE = section(
  'Which share of the requests a proxy records, by their verdict; 1: all, 0: none. Statistics always count all. Requests with evidence of a threat are always recorded, and the first one of each agent, tool and browser in an hour.',
  {
    default: setting(share, 1, 'Of requests whose verdict has no share of its own.', inPart),
    agent: setting(optional(share), null, 'Of requests of agents. `null`: as `default`.', inAgentPart),
    automation: setting(
      optional(share),
      null,
      'Of requests of other programs. `null`: as `default`.',
      inPart,
    ),
    human: setting(optional(share), null, 'Of requests of people. `null`: as `default`.', inPart),
    unknown: setting(optional(share), null, 'Of requests without a verdict. `null`: as `default`.', inPart),
    blocked: setting(
      share,
      1,
      'Of requests that a rule refuses, limits or delays, whatever their verdict.',
      inBlockedPart,
    ),
    apps: sections(OF_APP, 'Other shares for requests to some apps.'),
  },
)

export interface SamplingConfig {
  readonly shares: ValueOf<typeof SAMPLE>
  readonly perSecond: number | null
}

/** Settings that are invalid by themselves are undefined here. */
export function checkSample(
  { apps }: { readonly apps: readonly { readonly app: string | undefined }[] },
  refuse: Say,
): void {
  for (const [index, { app }] of apps.entries())
    if (app !== undefined && apps.findIndex((each) => each.app === app) < index)
      refuse(`/sightings/sample/apps/${index}/app`, `"${app}" is already used; write its shares once`)
}

function inPart(of: number | null): string | null {
  return of === null || of === 1
    ? null
    : 'campaigns and new fingerprints are found in this share of the requests only'
}

function inAgentPart(of: number | null): string | null {
  return of === null || of === 1 ? null : 'violations of robots.txt are found in this share only'
}

function inBlockedPart(of: number | null): string | null {
  return of === null || of === 1 ? null : 'refused requests are reported as threats in this share only'
}
