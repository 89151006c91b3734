import { catalogueContract } from '../contract/catalogue.ts'
import { catalogueMergeContract } from '../contract/catalogue-merge.ts'
import { KINDS } from './databases.ts'

for (const kind of KINDS) {
  catalogueContract(kind)
  catalogueMergeContract(kind)
}
