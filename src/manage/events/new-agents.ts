import { proofIn } from '../../plane/sighting-document.ts'
import type { Sighting } from '../../plane/sighting.ts'
import { timeOf } from '../http/schemas.ts'
import type { EventDraft } from './event-draft.ts'
import {
  fingerprintsOf,
  nameOf,
  outlineOf,
  type SoftwareNames,
  subjectOf,
} from '../judging/sighting-account.ts'

/** The event for the first request of an agent, or of a client that claims to be it. */
export function newAgentDraft(first: Sighting, names: SoftwareNames): EventDraft {
  const id = first.agent!
  const { category, confidence, verified, seenAtMs } = first
  const data = {
    agent: { id, name: nameOf(id, names), category },
    fingerprints: fingerprintsOf(first),
    ...{ verified, proof: proofIn(first) },
    first_seen: timeOf(seenAtMs),
    sighting: outlineOf(first),
  }
  const subject = subjectOf(first, `agent ${id}`)
  return { type: 'new_agent', subject, agent: id, category, severity: null, confidence, data }
}
