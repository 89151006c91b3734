import { catalogueContract } from '../contract/catalogue.ts'
import { KINDS } from './databases.ts'

for (const kind of KINDS) catalogueContract(kind)
