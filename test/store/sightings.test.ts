import { requestSearchContract } from '../contract/request-search.ts'
import { sightingsContract } from '../contract/sightings.ts'
import { KINDS } from './databases.ts'

for (const kind of KINDS) {
  sightingsContract(kind)
  requestSearchContract(kind)
}
