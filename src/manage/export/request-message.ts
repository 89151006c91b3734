import type { Sighting } from '../../plane/sighting.ts'
import { REQUEST_COLUMNS, WEIGHT } from './request-columns.ts'
import { requestRow } from './request-row.ts'

/** A request as a message to other systems: an object with the columns of files of requests, and its app. */
export function requestMessage(sighting: Sighting): Readonly<Record<string, unknown>> {
  const row = requestRow(sighting, () => null)
  return Object.fromEntries(COLUMNS.map(({ name, read }) => [name, read(row)]))
}

/** Names of software change, and their ids do not. */
const COLUMNS = [
  ...REQUEST_COLUMNS.filter(({ name }) => name !== 'agent_name' && name !== 'software_name'),
  WEIGHT,
]
