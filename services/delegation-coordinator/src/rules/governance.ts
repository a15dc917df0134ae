export { governanceRefusal, grantsCrossTenant } from "@harmovela/envelope";
