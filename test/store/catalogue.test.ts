import { catalogueContract } from '../contract/catalogue.ts'
import { catalogueListsContract } from '../contract/catalogue-lists.ts'
import { catalogueLookupContract } from '../contract/catalogue-lookup.ts'
import { catalogueMergeContract } from '../contract/catalogue-merge.ts'
import { KINDS } from './databases.ts'

for (const kind of KINDS) {
  catalogueContract(kind)
  catalogueListsContract(kind)
  catalogueLookupContract(kind)
  catalogueMergeContract(kind)
}
