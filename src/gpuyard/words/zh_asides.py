"""中文：别处直接用英文说明的问题，在这里按原文对应。"""

from __future__ import annotations

from collections.abc import Mapping

ASIDES: Mapping[str, str] = {
    # What the parsers of amounts say by themselves, when passed on as it is.
    "expected an amount like 512M, 16G or 1.5T": "应当写成 512M、16G 或 1.5T 这样",
    "expected more than 0 and at most 1024T": "应当大于 0，最大 1024T",
    "expected cores like 4, 0.5 or 500m": "应当写核数，如 4、0.5 或 500m",
    "expected more than 0 and at most 10000 cores": "应当大于 0，最多 10000 核",
    "expected a number of cards like 1, 8 or 0.5": "应当写卡数，如 1、8 或 0.5",
    "expected at most 100000 cards": "最多 100000 张卡",
    "cards are whole (1, 2, 8) or a share of one card (0.5)": "卡数应当是整数（1、2、8），或一张卡的一部分（0.5）",
    "expected a time like 90s, 30m, 2h30m or 1d": "应当写成 90s、30m、2h30m 或 1d 这样",
    "expected more than 0 and at most 366 days": "应当大于 0，最长 366 天",
    # What other rooms say in passing.
    "this server has another name": "这个服务不叫这个名字",
    "it is there twice": "写了两次",
    "it did not arrive in time": "没有及时收到",
    "it did not arrive whole": "没有完整收到",
    "expected 1 to 128 printable ASCII characters": "应当是 1 到 128 个可见的 ASCII 字符",
    "expected a user name": "应当是用户名",
    "expected 64 hexadecimal digits (SHA-256)": "应当是 64 位十六进制数（SHA-256）",
    "what arrived has another SHA-256; it was changed or cut off on the way": "收到的内容 SHA-256 不符，可能中途被截断",
    "there is no such file": "没有这个文件",
    "expected sqlite:////path or postgresql://": "应当是 sqlite:////path 或 postgresql:// 开头的地址",
    "not a cursor of a list": "这不是列表给出的游标",
    "expected a number": "应当是数字[，大于 {above}][，小于 {below}][，最小 {least}][，最大 {most}]",
    "expected an amount like 8, 0.5 or 16G": "应当写成 8、0.5 或 16G 这样的数量",
    "expected the id of an event": "应当是事件的编号",
    "it cannot be used here": "这里不能用这个值",
    "it cannot be read": "内容无法读取",
    "the job file names another folder": "任务文件里写的是另一个文件夹",
    "write at least two characters of the id, or the whole name": "请至少写出 id 的前两个字符，或写完整的名字",
    # What Python says of broken JSON.
    "Expecting value": "这里少了一个值",
    "Expecting property name enclosed in double quotes": "字段名要用双引号括起来",
    "Expecting ':' delimiter": "这里少了冒号",
    "Expecting ',' delimiter": "这里少了逗号",
    "Illegal trailing comma before end of object": "最后一项后面多了逗号",
    "Illegal trailing comma before end of array": "最后一项后面多了逗号",
    "Unterminated string starting at": "引号没有成对",
    "Invalid control character at": "文字里有控制字符",
    "Invalid \\escape": "反斜杠后面的写法不对",
    "Invalid \\uXXXX escape": "反斜杠后面的写法不对",
    "Extra data": "后面多出了内容",
}
