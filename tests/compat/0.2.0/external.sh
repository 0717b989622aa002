# An external policy of protocol 1: it starts job 0, and writes down what it is told first.
read -r hello
echo "$hello" >told-hello.json
echo '{"protocol": 1}'
read -r turn
echo "$turn" >told-turn.json
echo '{"start": [{"job": 0, "point": 0}], "change": [], "drop": [], "wake_s": 1000000}'
while read -r turn; do
    echo '{"start": []}'
done
